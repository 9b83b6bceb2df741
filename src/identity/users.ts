/** Manages users who sign in, and creates a user and their parent key on the first visit. */

import { type Selectable, sql, type Updateable } from 'kysely'
import type { Database } from '../db/database.ts'
import { mapConstraintError } from '../db/open.ts'
import type { UserTable } from '../db/tables.ts'
import { unixSeconds } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import {
  contains,
  findListPlace,
  type Order,
  type Page,
  type PageQuery,
  pageOf,
  toPage,
} from '../lib/page.ts'
import { type AuditDeps, type Trace, userActor } from './audit.ts'
import type { Dependencies } from './dependencies.ts'
import { claimFirstKey } from './key-claims.ts'
import { insertAutomaticKey, listKeysOfUser } from './keys.ts'
import type { Identity } from './proxy-sign-in.ts'

type UserDeps = AuditDeps & Pick<Dependencies, 'clock'>

export interface UserWithKey extends UserRow {
  readonly active_key_id: string
}

const SEEN_EVERY_SECONDS = 60

/**
 * Returns the user; creates the user and a key on the first visit. If the active key was revoked, selects
 * another of the user's keys or creates one.
 */
export async function findOrCreateUser(
  deps: UserDeps,
  identity: Identity,
  trace: Trace,
): Promise<UserWithKey> {
  const user = (await findUserByEmail(deps.db, identity.email)) ?? (await createUser(deps, identity, trace))
  const now = unixSeconds(deps.clock)
  const { name, username = null } = identity
  if (now - user.last_seen_at >= SEEN_EVERY_SECONDS) {
    const groups = JSON.stringify(identity.groups)
    await updateUser(deps.db, user.id, { name, username, groups, last_seen_at: now })
  }
  const keys = await listKeysOfUser(deps, user.id)
  const { active_key_id } = user
  if (active_key_id !== null && keys.some(({ id }) => id === active_key_id)) return { ...user, active_key_id }
  return activateKey(deps, user, identity, trace)
}

/** Creates the user. If two first visits are concurrent, only one of them creates the user. */
async function createUser(deps: UserDeps, identity: Identity, trace: Trace): Promise<UserRow> {
  const { email, name, username = null } = identity
  const now = unixSeconds(deps.clock)
  const user = {
    id: newId('user-', 20, deps.random),
    email,
    name,
    username,
    groups: JSON.stringify(identity.groups),
    active_key_id: null,
    created_at: now,
    last_seen_at: now,
  }
  try {
    return await deps.db.transaction().execute(async (trx) => {
      await trx.insertInto('users').values(user).execute()
      return assignKey({ ...deps, db: trx }, user, identity, trace)
    })
  } catch (error) {
    const winner = await findUserByEmail(deps.db, email)
    if (mapConstraintError(error) !== 'unique' || winner === undefined) throw error
    return winner
  }
}

async function activateKey(
  deps: UserDeps,
  { id }: UserRow,
  identity: Identity,
  trace: Trace,
): Promise<UserWithKey> {
  return deps.db.transaction().execute(async (trx) => {
    const user = await lockUser(trx, id)
    const keys = await listKeysOfUser({ db: trx }, user.id)
    const key = keys.find(({ id }) => id === user.active_key_id) ?? keys[0]
    if (key === undefined) return assignKey({ ...deps, db: trx }, user, identity, trace)
    await updateUser(trx, user.id, { active_key_id: key.id })
    return { ...user, active_key_id: key.id }
  })
}

/**
 * Assigns the installation's first key to its owner, and a new key to any other user. Runs in the caller's
 * transaction.
 */
async function assignKey(
  deps: UserDeps,
  user: UserRow,
  identity: Identity,
  trace: Trace,
): Promise<UserWithKey> {
  const actor = userActor(user.email, trace)
  const first = identity.ownsFirstKey ? await claimFirstKey(deps, actor, user.id) : undefined
  const active_key_id = first ?? (await insertAutomaticKey(deps, actor, user))
  await updateUser(deps.db, user.id, { active_key_id })
  return { ...user, active_key_id }
}

/** Sort expressions for lists of users; the id breaks ties. */
export const userSorts = {
  created: sql.ref('created_at'),
  email: sql.ref('email'),
  last_seen: sql.ref('last_seen_at'),
} as const

export interface UserListQuery extends PageQuery {
  readonly sort: keyof typeof userSorts
  readonly order: Order
  /** Selects users whose email address, name or id contains this text. */
  readonly q?: string | undefined
}

/** Lists a page of users. @throws ServiceError `invalid_value` if `after` is not a user's id. */
export async function listUsers(
  { db }: Pick<Dependencies, 'db'>,
  { limit, after, sort, order, q }: UserListQuery,
): Promise<Page<UserRow>> {
  const users = db.selectFrom('users').selectAll()
  const place = await findListPlace(users, userSorts[sort], after)
  const found = q === undefined ? users : users.where(contains(['email', 'name', 'id'], q))
  const page = { by: userSorts[sort], order, after: place, limit: limit + 1 }
  return toPage(await pageOf(found, page).execute(), limit)
}

export async function readEmails(
  { db }: Pick<Dependencies, 'db'>,
  userIds: readonly string[],
): Promise<Map<string, string>> {
  if (userIds.length === 0) return new Map()
  const rows = await db.selectFrom('users').select(['id', 'email']).where('id', 'in', userIds).execute()
  return new Map(rows.map(({ id, email }) => [id, email]))
}

export type UserRow = Selectable<UserTable>

export async function findUserByEmail(db: Database, email: string): Promise<UserRow | undefined> {
  return db.selectFrom('users').selectAll().where('email', '=', email).executeTakeFirst()
}

export async function updateUser(db: Database, id: string, changes: Updateable<UserTable>): Promise<void> {
  await db.updateTable('users').set(changes).where('id', '=', id).execute()
}

export async function lockUser(trx: Database, id: string): Promise<UserRow> {
  return trx
    .updateTable('users')
    .set((row) => ({ active_key_id: row.ref('active_key_id') }))
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
}
