/** The check of `parley doctor` that looks at the secret; it makes none. */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { loadSealer } from '../agents/sealer.ts'
import type { Config } from '../config.ts'
import { hasSecret } from '../db/data-directory.ts'
import type { Database } from '../db/database.ts'
import { StartupError } from '../startup-error.ts'
import { type Finding, fail, ok, reasonOf, warn } from './finding.ts'

const OTHERS_USE = 0o077

/** Loading a secret makes one where there is none, so that is looked at first. */
export async function checkSecret(config: Config, db: Database | undefined): Promise<Finding> {
  const check = 'secret'
  const { dataDir, secret } = config
  const path = join(dataDir, 'secret')
  const isThere = await hasSecret(dataDir)
  try {
    const hasAgents = db !== undefined && (await findAnyAgent(db))
    if (secret === undefined && !isThere && !hasAgents) {
      return ok(check, 'there is none yet; the first start makes it')
    }
    if (db !== undefined) await loadSealer(config, { db, random: refuseChance })
  } catch (error) {
    return fail(check, reasonOf(error))
  }
  const found = db === undefined ? 'is there' : 'fits the stored agent keys'
  if (secret !== undefined) return ok(check, `PARLEY_SECRET ${found}${tellFormer(config)}`)
  const mode = (await stat(path)).mode & 0o777
  if ((mode & OTHERS_USE) === 0) return ok(check, `${path} ${found}${tellFormer(config)}`)
  return warn(check, `${path} is open to other users (mode ${mode.toString(8)}); run \`chmod 600\` on it`)
}

function tellFormer({ formerSecrets }: Config): string {
  return formerSecrets.length === 0
    ? ''
    : '; PARLEY_SECRET_PREVIOUS counts too: take it out once the server has started with it and 30 days have passed'
}

async function findAnyAgent(db: Database): Promise<boolean> {
  return (await db.selectFrom('agents').select('id').limit(1).executeTakeFirst()) !== undefined
}

function refuseChance(): never {
  throw new StartupError('The secret has gone missing meanwhile; run this again.')
}
