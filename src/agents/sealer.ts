/** Finds the installation's secret, and makes sure that it is the one its agent keys were sealed with. */
import type { Config } from '../config.ts'
import { hasSecret, loadOrCreateSecret } from '../db/data-directory.ts'
import type { Deps } from '../deps.ts'
import { createSealer, type Sealer, sealedUnder } from '../keys/seal.ts'
import { StartupError } from '../startup-error.ts'
import { findSealedKey } from './store.ts'

/**
 * The sealer of an installation; its secret is made where nothing was sealed yet. Decision: 2 (`PARLEY_SECRET`).
 * @throws StartupError when the secret is lost or another one: answers that show an agent key would all fail later.
 */
export async function loadSealer(
  { dataDir, secret: given }: Pick<Config, 'dataDir' | 'secret'>,
  { db, random }: Pick<Deps, 'db' | 'random'>,
): Promise<Sealer> {
  const sealed = await findSealedKey(db)
  if (sealed !== undefined && given === undefined && !(await hasSecret(dataDir))) {
    throw new StartupError(
      `The file ${dataDir}/secret is missing, and the agent keys in the database were sealed with it; put it back, or set PARLEY_SECRET if the secret stood there.`,
    )
  }
  const sealer = createSealer(given ?? (await loadOrCreateSecret(dataDir, random)), random)
  if (sealed === undefined || sealedUnder(sealed) === sealer.keyId) return sealer
  const source = given === undefined ? `the file ${dataDir}/secret` : 'PARLEY_SECRET'
  throw new StartupError(
    `The agent keys in ${dataDir} were sealed with another secret than the one in ${source}; put the former secret back.`,
  )
}
