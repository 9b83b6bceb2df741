/** Compares the counters of budgets with their reservations and with the sums of days. */
import { sql } from 'kysely'
import type { BudgetRow } from '../../budgets/budget-store.ts'
import { readMeters } from '../../budgets/meter-operations.ts'
import type { Config } from '../../config/config.ts'
import type { Database } from '../../db/database.ts'
import { openDatabase } from '../../db/open.ts'
import { systemClock, unixSeconds } from '../../lib/clock.ts'
import { renderTime } from '../output.ts'
import { type Diagnostic, ok, warn } from './diagnostic.ts'

const check = 'budgets'
const MOST_NAMED = 3
const DAY_SECONDS = 86_400
/** Seconds after which another server has booked the reservations of a stopped one. */
const BOOKED_AFTER_SECONDS = 300

/**
 * Returns no result if there are no budgets, or if the database cannot be read, because another check reports
 * that.
 */
export async function checkBudgets(config: Config): Promise<Diagnostic[]> {
  if (config.databaseUrl === undefined && config.dataDir === ':memory:') return []
  const opened = await openDatabase({ ...config, role: 'command' }).catch(() => undefined)
  if (opened === undefined) return []
  try {
    return [
      ...(await compareBudgets(opened.db, unixSeconds(systemClock))),
      ...(await checkMeters(opened.db, config)),
    ]
  } finally {
    await opened.close()
  }
}

/** Names the models whose answers budgets measure in bytes. */
async function checkMeters(db: Database, { providers }: Config): Promise<Diagnostic[]> {
  const models = (await readMeters(db, systemClock)).map(
    ({ provider, model, until }) => `${provider}/${model} until ${renderTime(until)}`,
  )
  const metered = providers.filter((one) => one.kind === 'gateway' && one.metering === 'bytes')
  const configured = metered.map(({ name }) => `${name}/*`)
  const message = (names: readonly string[]) =>
    `budgets measure the answers of these models in bytes: ${names.join(', ')}`
  const advice = 'each exceeded a bound; `parley budgets meters clear` trusts a model again'
  return [
    ...(configured.length === 0 ? [] : [ok(check, `${message(configured)} (metering: bytes)`)]),
    ...(models.length === 0 ? [] : [warn(check, `${message(models)}; ${advice}`)]),
  ]
}

async function compareBudgets(db: Database, nowSeconds: number): Promise<Diagnostic[]> {
  const budgets = await db.selectFrom('budgets').select('id').execute()
  if (budgets.length === 0) return []
  const problems = [
    ...(await checkReservations(db)),
    ...(await checkExpired(db, nowSeconds)),
    ...(await checkDays(db, nowSeconds)),
  ]
  return problems.length > 0
    ? problems
    : [ok(check, `the counters of ${budgets.length} budgets are consistent`)]
}

/** Finds counters whose reserved amount is not the sum of their reservations. */
async function checkReservations(db: Database): Promise<Diagnostic[]> {
  const { rows } = await sql<{ id: string }>`
    select distinct budget_id as id from budget_counters as counters where reserved <> (
      select coalesce(sum(amount), 0) from budget_reservations as reservations
      where reservations.budget_id = counters.budget_id and reservations.subject = counters.subject
        and reservations.starts_at = counters.starts_at and process_id <> '')
    order by budget_id`.execute(db)
  if (rows.length === 0) return []
  const message = `the reserved amount of ${name(rows)} differs from its reservations; run this again; if the difference remains, delete the budget and create it again, so that it starts with the recorded usage`
  return [warn(check, message)]
}

/** Finds reservations that no server renews or books. */
async function checkExpired(db: Database, nowSeconds: number): Promise<Diagnostic[]> {
  const { rows } = await sql<{ id: string }>`
    select distinct budget_id as id from budget_reservations
    where process_id <> '' and expires_at < ${nowSeconds - BOOKED_AFTER_SECONDS} order by budget_id`.execute(
    db,
  )
  if (rows.length === 0) return []
  const message = `${name(rows)} has reservations of a stopped server; start a server, which books them`
  return [warn(check, message)]
}

/**
 * Finds budgets of keys and agents that have booked less than the usage of their period. More is normal,
 * because interrupted calls are booked at their upper bound, and because a new budget also counts the part of
 * its first day before the period.
 */
async function checkDays(db: Database, nowSeconds: number): Promise<Diagnostic[]> {
  const counters = await db
    .selectFrom('budget_counters as counters')
    .innerJoin('budgets', 'budgets.id', 'counters.budget_id')
    .select(['id', 'parent_key_id', 'scope_kind', 'scope_id', 'unit', 'starts_at', 'booked'])
    .where('scope_kind', 'in', ['key', 'agent'])
    .where('starts_at', '<=', nowSeconds)
    .where(({ or, eb }) => or([eb('ends_at', 'is', null), eb('ends_at', '>', nowSeconds)]))
    .orderBy('id')
    .execute()
  const wrong: { readonly id: string }[] = []
  for (const counter of counters) {
    const corrections = await sumCorrections(db, counter)
    if (Number(counter.booked) - corrections < (await sumDays(db, counter))) wrong.push(counter)
  }
  if (wrong.length === 0) return []
  const message = `${name(wrong)} has booked less than the usage of its period; correct it with \`parley budgets adjust\``
  return [warn(check, message)]
}

type Counter = Pick<BudgetRow, 'id' | 'parent_key_id' | 'scope_kind' | 'scope_id' | 'unit'> & {
  readonly starts_at: number
}

async function sumCorrections(db: Database, { id, starts_at }: Counter): Promise<number> {
  const { sum } = await db
    .selectFrom('budget_entries')
    .select(({ fn }) => fn.sum<number | null>('amount').as('sum'))
    .where('budget_id', '=', id)
    .where('starts_at', '=', starts_at)
    .where('kind', '=', 'adjustment')
    .executeTakeFirstOrThrow()
  return Number(sum ?? 0)
}

/** Sums the UTC days that begin within the period. */
async function sumDays(db: Database, counter: Counter): Promise<number> {
  const { parent_key_id, scope_kind, scope_id, unit, starts_at } = counter
  const firstDay = new Date(Math.ceil(starts_at / DAY_SECONDS) * DAY_SECONDS * 1000)
    .toISOString()
    .slice(0, 10)
  let query = db
    .selectFrom('usage_days')
    .select(({ fn }) => [
      fn.sum<number | null>('prompt_tokens').as('input'),
      fn.sum<number | null>('completion_tokens').as('output'),
      fn.sum<number | null>('cost').as('cost'),
    ])
    .where('parent_key_id', '=', parent_key_id)
    .where('day', '>=', firstDay)
  if (scope_kind === 'agent') query = query.where('agent_id', '=', scope_id)
  const { input, output, cost } = await query.executeTakeFirstOrThrow()
  return unit === 'usd' ? Number(cost ?? 0) : Number(input ?? 0) + Number(output ?? 0)
}

function name(rows: readonly { readonly id: string }[]): string {
  const ids = rows.slice(0, MOST_NAMED).map(({ id }) => id)
  const more = rows.length - ids.length
  return `${ids.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
