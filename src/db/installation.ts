/** Reads and writes the `installation` row: the installation's id and the id of its shared secret. */
import { randomUUID } from 'node:crypto'
import { type Clock, unixSeconds } from '../lib/clock.ts'
import { StartupError } from '../lib/errors.ts'
import type { Sealer } from '../lib/sealer.ts'
import type { Database } from './database.ts'

export async function findInstallation(
  db: Database,
): Promise<{ readonly id: string; readonly secret_key_id: string | null } | undefined> {
  return db.selectFrom('installation').select(['id', 'secret_key_id']).executeTakeFirst()
}

/** Locks the installation until the transaction ends. Its row must exist. */
export async function lockInstallation(trx: Database): Promise<void> {
  await trx
    .updateTable('installation')
    .set((row) => ({ id: row.ref('id') }))
    .execute()
}

export async function getInstallationId({ db, clock }: { db: Database; clock: Clock }): Promise<string> {
  await db
    .insertInto('installation')
    .values({ only: 1, id: randomUUID(), created_at: unixSeconds(clock) })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  return (await findInstallation(db))?.id as string
}

/** @throws StartupError if this server's secret differs from the one that the other servers share. */
export async function assertSharedSecret({ db }: { db: Database }, sealer: Sealer): Promise<void> {
  const known = (await findInstallation(db))?.secret_key_id ?? null
  if (known === null || [sealer.keyId, ...sealer.formerKeyIds].includes(known)) return
  throw new StartupError(
    'Other servers that use this database have a different secret. Set PARLEY_SECRET to the same value on all servers or, to change it, add the old value to PARLEY_SECRET_PREVIOUS.',
  )
}

/**
 * Records the secret that the servers share. @throws StartupError if another server recorded a different one.
 */
export async function shareSecret(deps: { db: Database; clock: Clock }, sealer: Sealer): Promise<void> {
  await getInstallationId(deps)
  await deps.db
    .updateTable('installation')
    .set({ secret_key_id: sealer.keyId })
    .where((where) =>
      where.or([
        where('secret_key_id', 'is', null),
        ...sealer.formerKeyIds.map((former) => where('secret_key_id', '=', former)),
      ]),
    )
    .execute()
  await assertSharedSecret(deps, sealer)
}
