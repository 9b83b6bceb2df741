/** Loads the secret of the installation, checks that it can open the sealed agent keys, and seals them again after a change of secret. */

import type { Config } from '../config/config.ts'
import { hasSecret, loadOrCreateSecret } from '../db/data-directory.ts'
import type { Database } from '../db/database.ts'
import { assertSharedSecret } from '../db/installation.ts'
import { StartupError } from '../lib/errors.ts'
import { createSealer, type Sealer, sealedPrefix } from '../lib/sealer.ts'
import type { Dependencies } from './dependencies.ts'
import type { AgentRow } from './store.ts'

const BATCH = 500

type SealedKey = Pick<AgentRow, 'id' | 'key_sealed'>

/** Creates the secret if no key was sealed yet. @throws StartupError if it is missing or wrong: responses with agent keys would fail. */
export async function loadSealer(
  { dataDir, secret: given, formerSecrets }: Pick<Config, 'dataDir' | 'secret' | 'formerSecrets'>,
  { db, random }: Pick<Dependencies, 'db' | 'random'>,
): Promise<Sealer> {
  const [sealed] = await listSealedKeys(db, [], 1)
  if (sealed !== undefined && given === undefined && !(await hasSecret(dataDir))) {
    throw new StartupError(
      `The file ${dataDir}/secret is missing, and the agent keys in the database were sealed with it; put it back, or set PARLEY_SECRET if the secret stood there, or stands there for other servers.`,
    )
  }
  const sealer = createSealer(given ?? (await loadOrCreateSecret(dataDir, random)), random, formerSecrets)
  await assertSharedSecret({ db }, sealer)
  const known = [sealer.keyId, ...sealer.formerKeyIds].map(sealedPrefix)
  if ((await listSealedKeys(db, known, 1)).length === 0) return sealer
  const source = given === undefined ? `the file ${dataDir}/secret` : 'PARLEY_SECRET'
  throw new StartupError(
    `The agent keys in the database were sealed with another secret than the one in ${source}; put the former secret back, or name it in PARLEY_SECRET_PREVIOUS.`,
  )
}

/** Seals keys of former secrets with the current one. A key that cannot be opened is not changed: responses with its agent fail as before. */
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
        if (sealed === undefined) log.warn({ agentId: row.id }, 'a sealed agent key cannot be opened')
        else {
          // The key may have been rotated since it was read.
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

/** Sealed keys of all tenants that start with none of the prefixes, by agent id, after `afterId`. */
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
  // `_` in a prefix matches any character, which does not matter for random names.
  for (const prefix of prefixes) query = query.where('key_sealed', 'not like', `${prefix}%`)
  return query.execute()
}
