/** Raises the limit of a budget's current period, corrects what was booked, and lists subjects. */
import type { Database } from '../db/database.ts'
import type { Actor } from '../identity/audit.ts'
import { unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import {
  type BudgetRow,
  type CounterKey,
  type CounterRow,
  countGrants,
  type EntryRow,
  findCounter,
  insertCounters,
  insertEntry,
  listSubjectCounters,
  lockBudget,
  lockCounters,
  sumGrants,
  updateCounter,
} from './budget-store.ts'
import { assertOwn, getBudgetRow, type ReadDeps, record, renderCounter, type WriteDeps } from './budgets.ts'
import { insertEvents } from './events/outbox.ts'
import { reportThresholds } from './events/report.ts'
import {
  type AdjustmentBody,
  type GrantBody,
  parseAmount,
  renderAmount,
  type SubjectList,
  type SubjectQuery,
} from './schema.ts'

const MOST_GRANTS = 100
/** Keeps the sum of a limit and its grants exact in the database and in JSON. */
const MOST_GRANTED = 8_000_000_000_000_000
const ID_LENGTH = 24

interface EntryOf extends Pick<BudgetRow, 'unit'> {
  readonly row: EntryRow
}

/** Adds a grant to the current period. @throws ServiceError */
export async function addGrant(
  deps: WriteDeps,
  actor: Actor,
  tenantId: string,
  id: string,
  body: GrantBody,
): Promise<EntryOf> {
  const expires_at = body.expires_at ?? null
  if (expires_at !== null && expires_at <= unixSeconds(deps.clock))
    throw invalid('expires_at', 'must be in the future')
  return deps.db.transaction().execute(async (trx) => {
    const budget = await getBudgetRow(trx, tenantId, id)
    assertOwn(budget, actor)
    const amount = parseAmount(body.amount, budget.unit, 'amount')
    await lockBudget(trx, id)
    const { startsAt: starts_at } = deps.budgets.findPeriod(budget.period, deps.clock.now())
    const subject = await findSubject(trx, budget, starts_at, body.subject)
    if ((await countGrants(trx, { budget_id: id, subject, starts_at })) >= MOST_GRANTS)
      throw new ServiceError('conflict', `There are already ${MOST_GRANTS} grants in this period.`)
    const key = { budget_id: id, subject, starts_at }
    if ((await readGranted(trx, key, unixSeconds(deps.clock))) + amount > MOST_GRANTED)
      throw invalid('amount', 'must not raise the grants of the period above 8000000 US dollars')
    const entry = toEntry(deps, actor, key, { ...body, amount })
    const row: EntryRow = { ...entry, kind: 'grant', expires_at }
    await insertEntry(trx, row)
    const details = {
      amount: renderAmount(amount, budget.unit),
      reason: body.reason,
      subject: subject || null,
    }
    await record({ ...deps, db: trx }, actor, 'budget.grant', budget, { ...details, expires_at })
    return { row, unit: budget.unit }
  })
}

async function readGranted(db: Database, key: CounterKey, nowSeconds: number): Promise<number> {
  const grants = await sumGrants(db, [key.budget_id], nowSeconds)
  const own = grants.find(({ subject, starts_at }) => subject === key.subject && starts_at === key.starts_at)
  return Number(own?.amount ?? 0)
}

/** Corrects what was booked in the current period. @throws ServiceError */
export async function addAdjustment(
  deps: WriteDeps,
  actor: Actor,
  tenantId: string,
  id: string,
  body: AdjustmentBody,
): Promise<EntryOf> {
  return deps.db.transaction().execute(async (trx) => {
    const budget = await getBudgetRow(trx, tenantId, id)
    assertOwn(budget, actor)
    const amount = parseAmount(body.amount, budget.unit, 'amount', true)
    const { startsAt: starts_at, endsAt: ends_at } = deps.budgets.findPeriod(budget.period, deps.clock.now())
    const subject = await findSubject(trx, budget, starts_at, body.subject)
    const key = { budget_id: id, subject, starts_at }
    await insertCounters(trx, [{ ...key, ends_at }])
    const [counter] = (await lockCounters(trx, [key])) as [CounterRow]
    if (counter.booked + amount < 0) throw invalid('amount', 'must not make the booked amount negative')
    const booked = Math.min(counter.booked + amount, Number.MAX_SAFE_INTEGER)
    const warned = await reportChange(deps, trx, budget, counter, booked)
    await updateCounter(trx, { ...counter, booked, warned })
    const entry = toEntry(deps, actor, key, { ...body, amount })
    const row: EntryRow = { ...entry, kind: 'adjustment', expires_at: null }
    await insertEntry(trx, row)
    const details = {
      amount: renderAmount(amount, budget.unit),
      reason: body.reason,
      subject: subject || null,
    }
    await record({ ...deps, db: trx }, actor, 'budget.adjust', budget, details)
    return { row, unit: budget.unit }
  })
}

/** Reports the thresholds that an adjustment crosses; returns the counter's new value of `warned`. */
async function reportChange(
  { clock, random }: WriteDeps,
  trx: Database,
  budget: BudgetRow,
  row: CounterRow,
  booked: number,
): Promise<string> {
  const nowSeconds = unixSeconds(clock)
  const grants = await sumGrants(trx, [budget.id], nowSeconds)
  const granted = grants.find((grant) => grant.subject === row.subject && grant.starts_at === row.starts_at)
  const change = { budget, row, limit: BigInt(budget.amount + Number(granted?.amount ?? 0)) }
  const { warned, events } = reportThresholds(
    { ...change, booked: BigInt(booked), isExhausted: false },
    { random, nowSeconds },
  )
  await insertEvents(trx, events)
  return warned
}

function renderEntry({ row, unit }: EntryOf) {
  const { id, budget_id, amount, reason, subject, created_at } = row
  return { id, budget_id, amount: renderAmount(amount, unit), reason, subject: subject || null, created_at }
}

export function renderGrant(entry: EntryOf) {
  return { object: 'budget.grant' as const, ...renderEntry(entry), expires_at: entry.row.expires_at }
}

export function renderAdjustment(entry: EntryOf) {
  return { object: 'budget.adjustment' as const, ...renderEntry(entry) }
}

/** Lists the visitors or conversations of the current period. */
export async function listSubjects(
  deps: ReadDeps,
  tenantId: string,
  { budget_id: id, order, limit }: SubjectQuery,
): Promise<SubjectList> {
  const { db, clock } = deps
  const budget = await getBudgetRow(db, tenantId, id)
  const { startsAt } = deps.budgets.findPeriod(budget.period, clock.now())
  const counters = await listSubjectCounters(db, id, startsAt, order === '-booked' ? 'desc' : 'asc', limit)
  const grants = await sumGrants(db, [id], unixSeconds(clock))
  const data = counters.map((counter) => {
    const isOwn = (grant: CounterKey) => grant.subject === counter.subject && grant.starts_at === startsAt
    const granted = Number(grants.find(isOwn)?.amount ?? 0)
    return { subject: counter.subject, ...renderCounter(budget, granted, counter) }
  })
  return { object: 'list', data }
}

/** Returns the subject of a counter; empty for budgets of keys and agents. @throws ServiceError */
async function findSubject(
  db: Database,
  { id, scope_kind }: BudgetRow,
  starts_at: number,
  subject: string | null | undefined,
): Promise<string> {
  if (scope_kind === 'key' || scope_kind === 'agent') {
    if (subject == null) return ''
    throw invalid('subject', `must be null for a budget with the scope ${scope_kind}`)
  }
  if (subject == null) throw invalid('subject', `is required for a budget with the scope ${scope_kind}`)
  const counter = await findCounter(db, { budget_id: id, subject, starts_at })
  if (counter === undefined)
    throw invalid('subject', 'must be a subject that has used the budget in the current period')
  return subject
}

function toEntry(
  { random, clock }: Pick<WriteDeps, 'random' | 'clock'>,
  actor: Actor,
  key: CounterKey,
  { amount, reason }: { readonly amount: number; readonly reason: string },
): Omit<EntryRow, 'kind' | 'expires_at'> {
  const id = newId('be_', ID_LENGTH, random)
  return { id, ...key, amount, reason, actor: actor.name ?? actor.kind, created_at: unixSeconds(clock) }
}

function invalid(param: string, problem: string): ServiceError {
  return new ServiceError('invalid_value', `${param}: ${problem}`, { param })
}
