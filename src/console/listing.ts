/** What administrators learn of users: all of them. */
import type { Deps } from '../deps.ts'
import { ServiceError } from '../errors.ts'
import { findUser, listUserPage, listUsersById, type UserRow } from './store.ts'

export type { UserRow } from './store.ts'

/** A part of a list; `hasMore` tells whether users follow it. */
export interface UserPage {
  readonly users: readonly UserRow[]
  readonly hasMore: boolean
}

/**
 * Every user, newest first.
 * @throws ServiceError `invalid_value` when `after` is no user's id.
 */
export async function listUsers(
  { db }: Pick<Deps, 'db'>,
  { limit, after }: { readonly limit: number; readonly after?: string | undefined },
): Promise<UserPage> {
  const last = after === undefined ? undefined : await findUser(db, after)
  if (after !== undefined && last === undefined)
    throw new ServiceError('invalid_value', 'after: names no user', { param: 'after' })
  // One more than wanted tells whether there are more.
  const rows = await listUserPage(db, limit + 1, last)
  return { users: rows.slice(0, limit), hasMore: rows.length > limit }
}

/** The e-mail addresses of these users, by their ids. */
export async function readEmails(
  { db }: Pick<Deps, 'db'>,
  userIds: readonly string[],
): Promise<Map<string, string>> {
  if (userIds.length === 0) return new Map()
  return new Map((await listUsersById(db, userIds)).map(({ id, email }) => [id, email]))
}
