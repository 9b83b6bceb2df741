/**
 * Loads the installation's secret, checks that it decrypts the stored keys of agents and providers, and
 * re-encrypts the agents' keys after the secret changes.
 */

import type { Config } from '../config/config.ts'
import { hasSecret, loadOrCreateSecret } from '../db/data-directory.ts'
import type { Database } from '../db/database.ts'
import { assertSharedSecret } from '../db/installation.ts'
import { StartupError } from '../lib/errors.ts'
import { createSealer, type Sealer, sealedPrefix } from '../lib/sealer.ts'
import { hasProviderKeyOfOtherSecret } from '../models/sealed-provider-keys.ts'
import type { Dependencies } from './dependencies.ts'
import type { AgentRow } from './store.ts'

const BATCH = 500

type SealedKey = Pick<AgentRow, 'id' | 'key_sealed'>

/**
 * Loads the installation's secret, or creates one if no keys are stored.
 * @throws StartupError if the secret is missing or cannot decrypt the stored keys.
 */
export async function loadSealer(
  { dataDir, secret: given, formerSecrets }: Pick<Config, 'dataDir' | 'secret' | 'formerSecrets'>,
  { db, random }: Pick<Dependencies, 'db' | 'random'>,
): Promise<Sealer> {
  const [sealed] = await listSealedKeys(db, [], 1)
  const hasKeys = sealed !== undefined || (await hasProviderKeyOfOtherSecret(db, []))
  if (hasKeys && given === undefined && !(await hasSecret(dataDir))) {
    throw new StartupError(
      `The file ${dataDir}/secret is missing, but the ${sealed === undefined ? 'provider' : 'agent'} keys in the database are encrypted with it. Restore the file, or set PARLEY_SECRET if this or another server used that setting.`,
    )
  }
  const sealer = createSealer(given ?? (await loadOrCreateSecret(dataDir, random)), random, formerSecrets)
  await assertSharedSecret({ db }, sealer)
  const keyIds = [sealer.keyId, ...sealer.formerKeyIds]
  const isOtherAgentKey = (await listSealedKeys(db, keyIds.map(sealedPrefix), 1)).length > 0
  if (!isOtherAgentKey && !(await hasProviderKeyOfOtherSecret(db, keyIds))) return sealer
  const source = given === undefined ? `the file ${dataDir}/secret` : 'PARLEY_SECRET'
  throw new StartupError(
    `The ${isOtherAgentKey ? 'agent' : 'provider'} keys in the database are encrypted with a different secret than the one in ${source}. Restore the previous secret, or add it to PARLEY_SECRET_PREVIOUS.`,
  )
}

/**
 * Re-encrypts agent keys that use a previous secret with the current secret. Skips keys that cannot be
 * decrypted.
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
    const rows = await listSealedKeys(db, present, BATCH, afterId)
    if (rows.length === 0) return
    afterId = rows.at(-1)?.id ?? afterId
    await db.transaction().execute(async (trx) => {
      for (const row of rows) {
        const sealed = reseal(sealer, row)
        if (sealed === undefined) log.warn({ agentId: row.id }, 'failed to decrypt an agent key')
        else {
          // Skips a key that was rotated after it was read.
          await trx
            .updateTable('agents')
            .set({ key_sealed: sealed })
            .where('id', '=', row.id)
            .where('key_sealed', '=', row.key_sealed)
            .execute()
        }
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

/**
 * Lists the encrypted agent keys of all tenants, except keys with one of the prefixes, ordered by agent id.
 */
async function listSealedKeys(
  db: Database,
  prefixes: readonly string[],
  limit: number,
  afterId = '',
): Promise<SealedKey[]> {
  let query = db
    .selectFrom('agents')
    .select(['id', 'key_sealed'])
    .where('id', '>', afterId)
    .orderBy('id')
    .limit(limit)
  // `_` in a prefix is a wildcard. A false match is unlikely, because the ids are random.
  for (const prefix of prefixes) query = query.where('key_sealed', 'not like', `${prefix}%`)
  return query.execute()
}
