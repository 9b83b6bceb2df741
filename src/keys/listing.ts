/** What administrators learn of parent keys: all of them, whoever they belong to. */
import type { Deps } from '../deps.ts'
import { ServiceError } from '../errors.ts'
import { keyNotFound } from './keys.ts'
import { findParentKey, listLiveKeysOf, listParentKeyPage, type ParentKeyRow } from './store.ts'

/** A part of a list; `hasMore` tells whether keys follow it. */
export interface KeyPage {
  readonly keys: readonly ParentKeyRow[]
  readonly hasMore: boolean
}

/**
 * Every parent key, newest first.
 * @throws ServiceError `invalid_value` when `after` is no key's id.
 */
export async function listKeyPage(
  { db }: Pick<Deps, 'db'>,
  { limit, after }: { readonly limit: number; readonly after?: string | undefined },
): Promise<KeyPage> {
  const last = after === undefined ? undefined : await findParentKey(db, after)
  if (after !== undefined && last === undefined)
    throw new ServiceError('invalid_value', 'after: names no key', { param: 'after' })
  // One more than wanted tells whether there are more.
  const rows = await listParentKeyPage(db, limit + 1, last)
  return { keys: rows.slice(0, limit), hasMore: rows.length > limit }
}

/** The keys of each of these users that were not revoked, newest first; a user without any is absent. */
export async function listKeysOfUsers(
  { db }: Pick<Deps, 'db'>,
  userIds: readonly string[],
): Promise<Map<string | null, ParentKeyRow[]>> {
  if (userIds.length === 0) return new Map()
  return Map.groupBy(await listLiveKeysOf(db, userIds), (row) => row.user_id)
}

/** @throws ServiceError `not_found` when there is no such key or it was revoked. */
export async function getLiveKey({ db }: Pick<Deps, 'db'>, id: string): Promise<ParentKeyRow> {
  const row = await findParentKey(db, id)
  if (row === undefined || row.revoked_at !== null) throw keyNotFound(id)
  return row
}
