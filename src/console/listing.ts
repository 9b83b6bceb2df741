/** What administrators learn of users: all of them. */
import { type Page, type PageQuery, readPage } from '../db/page.ts'
import type { Dependencies } from './dependencies.ts'
import { findUser, listUserPage, listUsersById, type UserRow } from './store.ts'

export type { UserRow } from './store.ts'

/** Every user, newest first. @throws ServiceError `invalid_value` when `after` is no user's id. */
export function listUsers({ db }: Pick<Dependencies, 'db'>, query: PageQuery): Promise<Page<UserRow>> {
  return readPage(query, {
    find: (id) => findUser(db, id),
    list: (limit, after) => listUserPage(db, limit, after),
  })
}

/** The e-mail addresses of these users, by their ids. */
export async function readEmails(
  { db }: Pick<Dependencies, 'db'>,
  userIds: readonly string[],
): Promise<Map<string, string>> {
  if (userIds.length === 0) return new Map()
  return new Map((await listUsersById(db, userIds)).map(({ id, email }) => [id, email]))
}
