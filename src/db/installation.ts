/** The installation: its id, and the secret that its servers share. */

import { randomUUID } from 'node:crypto'
import type { Clock } from '../lib/clock.ts'
import { unixSeconds } from '../lib/clock.ts'
import { StartupError } from '../lib/errors.ts'
import type { Sealer } from '../lib/sealer.ts'
import type { Database } from './database.ts'

interface InstallationDeps {
  readonly db: Database
  readonly clock: Clock
}

/** The installation; undefined while nobody has asked for its id. */
export async function findInstallation(
  db: Database,
): Promise<{ readonly id: string; readonly secret_key_id: string | null } | undefined> {
  return db.selectFrom('installation').select(['id', 'secret_key_id']).executeTakeFirst()
}

/** Names the key of the secret that is shared, where none is named yet or one of these. */
export async function updateSecret(
  db: Database,
  keyId: string,
  formerKeyIds: readonly string[],
): Promise<void> {
  await db
    .updateTable('installation')
    .set({ secret_key_id: keyId })
    .where((where) =>
      where.or([
        where('secret_key_id', 'is', null),
        ...formerKeyIds.map((former) => where('secret_key_id', '=', former)),
      ]),
    )
    .execute()
}

/** Gives the installation an id, unless it has one. */
export async function insertInstallation(db: Database, id: string, now: number): Promise<void> {
  await db
    .insertInto('installation')
    .values({ only: 1, id, created_at: now })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Lets one transaction at a time do what is done once in the life of an installation; there is a row of it by then. */
export async function lockInstallation(trx: Database): Promise<void> {
  await trx
    .updateTable('installation')
    .set((row) => ({ id: row.ref('id') }))
    .execute()
}

/** What tells this installation from others; it is made for whoever asks first. */
export async function getInstallationId({ db, clock }: InstallationDeps): Promise<string> {
  await insertInstallation(db, randomUUID(), unixSeconds(clock))
  return (await findInstallation(db))?.id as string
}

/**
 * Refuses another secret than the one the servers of this installation share. One of them alone shares it with nobody, and leaves this to
 * the keys it has sealed.
 * @throws StartupError
 */
export async function assertSharedSecret(
  { db }: Pick<InstallationDeps, 'db'>,
  sealer: Sealer,
): Promise<void> {
  const known = (await findInstallation(db))?.secret_key_id ?? null
  if (known === null || [sealer.keyId, ...sealer.formerKeyIds].includes(known)) return
  throw new StartupError(
    'The servers of this database use another secret than this one has; set PARLEY_SECRET to the same text for all of them, or name theirs in PARLEY_SECRET_PREVIOUS to change it.',
  )
}

/**
 * Writes down which secret the servers of this installation share from now on.
 * @throws StartupError when another one was written down since `assertSharedSecret`.
 */
export async function shareSecret(deps: InstallationDeps, sealer: Sealer): Promise<void> {
  await getInstallationId(deps)
  await updateSecret(deps.db, sealer.keyId, sealer.formerKeyIds)
  await assertSharedSecret(deps, sealer)
}
