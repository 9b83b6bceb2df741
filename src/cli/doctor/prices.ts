/** Implements the price check of `parley doctor`. */

import type { Config } from '../../config/config.ts'
import type { Database } from '../../db/database.ts'
import { openDatabase } from '../../db/open.ts'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { dayOf } from '../../usage/days.ts'
import { openPriceBook } from '../commands/prices/book.ts'
import { type Diagnostic, failOnStartupError, ok, warn } from './diagnostic.ts'

const DAY_MS = 86_400_000
const USED_DAYS = 30
const OLD_DAYS = 180
/** Maximum number of models in a message. */
const MOST_NAMED = 5

/** Checks the prices of the models that were called in the last 30 days. */
export async function checkPrices(
  config: Config,
  clock: Pick<Clock, 'now'> = systemClock,
): Promise<Diagnostic[]> {
  const check = 'prices'
  const { dataDir, databaseUrl } = config
  if (databaseUrl === undefined && dataDir === ':memory:') return []
  // Other checks report a database that cannot be opened.
  const opened = await openDatabase({ ...config, role: 'command' }).catch(() => undefined)
  if (opened === undefined) return []
  try {
    return await failOnStartupError(check, () => checkUsed(check, config, opened.db, clock.now()))
  } finally {
    await opened.close()
  }
}

async function checkUsed(check: string, config: Config, db: Database, nowMs: number): Promise<Diagnostic[]> {
  const used = await listUsed(db, dayOf(nowMs - USED_DAYS * DAY_MS))
  if (used.length === 0) return [ok(check, `no model was called in the last ${USED_DAYS} days`)]
  const book = await openPriceBook({ config, db })
  const unpriced: string[] = []
  const old: string[] = []
  for (const { provider, model } of used) {
    const price = book.find(provider, model, nowMs)
    if (price === undefined) unpriced.push(`${provider}/${model}`)
    else if (price.date !== null && price.date < dayOf(nowMs - OLD_DAYS * DAY_MS))
      old.push(`${provider}/${model} (${price.source}, ${price.date})`)
  }
  return [
    ...(unpriced.length === 0
      ? []
      : [
          warn(
            check,
            `these models have no price, so their calls have no cost: ${nameSome(unpriced)}; set prices with PARLEY_CONFIG, \`parley prices import\` or the console`,
          ),
        ]),
    ...(old.length === 0
      ? []
      : [
          warn(
            check,
            `these prices are older than ${OLD_DAYS} days: ${nameSome(old)}; compare them with the vendor's, and update Parley or set them again`,
          ),
        ]),
    ...(unpriced.length + old.length === 0
      ? [ok(check, `all models that were called in the last ${USED_DAYS} days have a price`)]
      : []),
  ]
}

function listUsed(db: Database, from: string): Promise<{ provider: string; model: string }[]> {
  return db
    .selectFrom('usage_days')
    .select(['provider', 'model'])
    .distinct()
    .where('day', '>=', from)
    .orderBy('provider')
    .orderBy('model')
    .execute()
}

function nameSome(names: readonly string[]): string {
  const rest = names.length - MOST_NAMED
  return rest > 0 ? `${names.slice(0, MOST_NAMED).join(', ')} and ${rest} more` : names.join(', ')
}
