/** Loads the secret of the installation, checks that it can open the sealed agent keys, and seals them again after a change of secret. */

import type { Config } from '../config/config.ts'
import { hasSecret, loadOrCreateSecret } from '../db/data-directory.ts'
import { assertSharedSecret } from '../db/installation.ts'
import { StartupError } from '../lib/errors.ts'
import { createSealer, type Sealer, sealedPrefix } from '../lib/sealer.ts'
import type { Dependencies } from './dependencies.ts'
import { findSealedKey, listSealedKeys, type SealedKey, updateSealedKey } from './store.ts'

type SecretConfig = Pick<Config, 'dataDir' | 'secret' | 'formerSecrets'>

/**
 * The sealer of the installation; creates its secret if no key was sealed yet.
 * @throws StartupError when the secret is missing or wrong, because every response that contains an agent key would fail.
 */
export async function loadSealer(
  { dataDir, secret: given, formerSecrets }: SecretConfig,
  { db, random }: Pick<Dependencies, 'db' | 'random'>,
): Promise<Sealer> {
  const sealed = await findSealedKey(db)
  if (sealed !== undefined && given === undefined && !(await hasSecret(dataDir))) {
    throw new StartupError(
      `The file ${dataDir}/secret is missing, and the agent keys in the database were sealed with it; put it back, or set PARLEY_SECRET if the secret stood there, or stands there for other servers.`,
    )
  }
  const sealer = createSealer(given ?? (await loadOrCreateSecret(dataDir, random)), random, formerSecrets)
  await assertSharedSecret({ db }, sealer)
  const known = [sealer.keyId, ...sealer.formerKeyIds].map(sealedPrefix)
  if ((await findSealedKey(db, known)) === undefined) return sealer
  const source = given === undefined ? `the file ${dataDir}/secret` : 'PARLEY_SECRET'
  throw new StartupError(
    `The agent keys in the database were sealed with another secret than the one in ${source}; put the former secret back, or name it in PARLEY_SECRET_PREVIOUS.`,
  )
}

const BATCH = 500

/**
 * Seals keys of former master keys with the current one, so that the former ones are no longer needed. A key that cannot be opened is not
 * changed: responses with its agent fail as before.
 */
export async function resealAgentKeys({
  db,
  sealer,
  log,
}: Pick<Dependencies, 'db' | 'sealer' | 'log'>): Promise<void> {
  if (sealer.formerKeyIds.length === 0) return
  const present = [sealedPrefix(sealer.keyId)]
  let afterId = ''
  for (;;) {
    const rows = await listSealedKeys(db, present, { afterId, limit: BATCH })
    if (rows.length === 0) return
    afterId = rows.at(-1)?.id ?? afterId
    await db.transaction().execute(async (trx) => {
      for (const row of rows) {
        const sealed = reseal(sealer, row)
        if (sealed === undefined) log.warn({ agentId: row.id }, 'a sealed agent key cannot be opened')
        else await updateSealedKey(trx, row, sealed)
      }
    })
  }
}

function reseal(sealer: Sealer, { id, key_sealed: sealed }: SealedKey): string | undefined {
  try {
    return sealer.seal(sealer.open(sealed, id), id)
  } catch {
    return undefined
  }
}
