/** Rows of users. */
import type { Insertable, Selectable, Updateable } from 'kysely'
import type { Database } from '../db/database.ts'
import type { UserTable } from '../db/tables.ts'

export type UserRow = Selectable<UserTable>

export async function insertUser(db: Database, row: Insertable<UserTable>): Promise<void> {
  await db.insertInto('users').values(row).execute()
}

export async function findUserByEmail(db: Database, email: string): Promise<UserRow | undefined> {
  return db.selectFrom('users').selectAll().where('email', '=', email).executeTakeFirst()
}

export async function findUser(db: Database, id: string): Promise<UserRow | undefined> {
  return db.selectFrom('users').selectAll().where('id', '=', id).executeTakeFirst()
}

/** A part of all users, newest first: those after that one. */
export async function listUserPage(
  db: Database,
  limit: number,
  after: Pick<UserRow, 'id' | 'created_at'> | undefined,
): Promise<UserRow[]> {
  let query = db.selectFrom('users').selectAll().limit(limit)
  if (after !== undefined) {
    query = query.where((row) =>
      row(row.refTuple('created_at', 'id'), '<', row.tuple(after.created_at, after.id)),
    )
  }
  return query.orderBy('created_at', 'desc').orderBy('id', 'desc').execute()
}

export async function listUsersById(db: Database, ids: readonly string[]): Promise<UserRow[]> {
  return db.selectFrom('users').selectAll().where('id', 'in', ids).execute()
}

export async function updateUser(db: Database, id: string, changes: Updateable<UserTable>): Promise<void> {
  await db.updateTable('users').set(changes).where('id', '=', id).execute()
}

/** The user, whom nobody else changes until the transaction is over. */
export async function lockUser(trx: Database, id: string): Promise<UserRow> {
  return trx
    .updateTable('users')
    .set((row) => ({ active_key_id: row.ref('active_key_id') }))
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
}
