/** What is one for all servers of an installation, wherever its database is: its name, and the secret they share. */
import { randomUUID } from 'node:crypto'
import type { Sealer } from '../keys/seal.ts'
import { unixSeconds } from '../lib/clock.ts'
import { StartupError } from '../startup-error.ts'
import type { Dependencies } from './dependencies.ts'
import { findInstallation, insertInstallation, updateSecret } from './store.ts'

/** What tells this installation from others; it is made for whoever asks first. */
export async function getInstallationId({ db, clock }: Pick<Dependencies, 'db' | 'clock'>): Promise<string> {
  await insertInstallation(db, randomUUID(), unixSeconds(clock))
  return (await findInstallation(db))?.id as string
}

/**
 * Refuses another secret than the one the servers of this installation share. One of them alone shares it with nobody, and leaves this to
 * the keys it has sealed.
 * @throws StartupError
 */
export async function assertSharedSecret({ db }: Pick<Dependencies, 'db'>, sealer: Sealer): Promise<void> {
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
export async function shareSecret(deps: Pick<Dependencies, 'db' | 'clock'>, sealer: Sealer): Promise<void> {
  await getInstallationId(deps)
  await updateSecret(deps.db, sealer.keyId, sealer.formerKeyIds)
  await assertSharedSecret(deps, sealer)
}
