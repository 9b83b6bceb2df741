/** What administrators learn of parent keys: all of them, whoever they belong to. */
import { type Page, type PageQuery, readPage } from '../db/page.ts'
import type { Dependencies } from './dependencies.ts'
import { keyNotFound } from './keys.ts'
import { findParentKey, listLiveKeysOf, listParentKeyPage, type ParentKeyRow } from './store.ts'

/** Every parent key, newest first. @throws ServiceError `invalid_value` when `after` is no key's id. */
export function listKeyPage({ db }: Pick<Dependencies, 'db'>, query: PageQuery): Promise<Page<ParentKeyRow>> {
  return readPage(query, {
    find: (id) => findParentKey(db, id),
    list: (limit, after) => listParentKeyPage(db, limit, after),
  })
}

/** The keys of each of these users that were not revoked, newest first; a user without any is absent. */
export async function listKeysOfUsers(
  { db }: Pick<Dependencies, 'db'>,
  userIds: readonly string[],
): Promise<Map<string | null, ParentKeyRow[]>> {
  if (userIds.length === 0) return new Map()
  return Map.groupBy(await listLiveKeysOf(db, userIds), (row) => row.user_id)
}

/** @throws ServiceError `not_found` when there is no such key or it was revoked. */
export async function getLiveKey({ db }: Pick<Dependencies, 'db'>, id: string): Promise<ParentKeyRow> {
  const row = await findParentKey(db, id)
  if (row === undefined || row.revoked_at !== null) throw keyNotFound(id)
  return row
}
