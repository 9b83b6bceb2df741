/** Creates, reads, changes and deletes budgets. */
import type { Database } from '../db/database.ts'
import { type Actor, type AuditDeps, recordAudit } from '../identity/audit.ts'
import { lockTenant } from '../identity/keys.ts'
import { unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { type Page, readPage } from '../lib/page.ts'
import {
  type BudgetRow,
  type CounterRow,
  deleteBudget,
  findBudget,
  findCounter,
  insertBudget,
  listBudgetPage,
  listOfTenant,
  sumGrants,
  updateBudget,
} from './budget-store.ts'
import { startCounter } from './counters.ts'
import { isDefault } from './default-budget.ts'
import type { Dependencies, SpentBefore } from './dependencies.ts'
import type { FindPeriod } from './periods.ts'
import {
  type Budget,
  type BudgetChanges,
  type BudgetCreation,
  type BudgetQuery,
  type OperatorBudgetsBody,
  parseAmount,
  renderAmount,
} from './schema.ts'

const MOST_BUDGETS = 20
/** Maximum number of budgets that apply to one call. */
const MOST_PER_CALL = 8
const ID_LENGTH = 24

export type ReadDeps = Pick<Dependencies, 'db' | 'clock'> & {
  readonly budgets: { readonly findPeriod: FindPeriod }
}

export type WriteDeps = ReadDeps & AuditDeps & { readonly usage: SpentBefore }

/** Finds agents, and whether they store conversations. */
export interface AgentFinder {
  readonly agents: {
    find(tenantId: string, id: string): Promise<FoundAgent | undefined> | FoundAgent | undefined
  }
}

interface FoundAgent {
  readonly definition: { readonly conversations?: unknown }
}

/** @throws ServiceError `not_found`, also for the budget of another tenant */
export async function getBudgetRow(db: Database, tenantId: string, id: string): Promise<BudgetRow> {
  const row = await findBudget(db, tenantId, id)
  if (row === undefined)
    throw new ServiceError('not_found', `Budget with id '${id}' not found.`, { param: 'budget_id' })
  return row
}

/** @throws ServiceError for an unknown scope, an invalid amount, or too many budgets */
export async function createBudget(
  deps: WriteDeps & AgentFinder,
  actor: Actor,
  tenantId: string,
  creation: BudgetCreation,
  managedBy: BudgetRow['managed_by'] = 'tenant',
): Promise<BudgetRow> {
  await assertScope(deps, tenantId, creation.scope)
  const row = toRow(deps, tenantId, creation, managedBy)
  await deps.usage.flush()
  await deps.db.transaction().execute(async (trx) => {
    const within = { ...deps, db: trx }
    await lockTenant(within, tenantId)
    assertRoom(await listOfTenant(trx, tenantId), row)
    await insertBudget(trx, row)
    await startCounter(within, row)
    await record(within, actor, 'budget.create', row, { after: toDetails(row) })
  })
  deps.usage.invalidate()
  return row
}

/** @throws ServiceError `insufficient_permissions` for a budget that the operator manages */
export async function changeBudget(
  deps: WriteDeps,
  actor: Actor,
  tenantId: string,
  id: string,
  changes: BudgetChanges,
): Promise<BudgetRow> {
  const row = await deps.db.transaction().execute(async (trx) => {
    await lockTenant({ db: trx }, tenantId)
    const before = await getBudgetRow(trx, tenantId, id)
    assertOwn(before, actor)
    const after: BudgetRow = {
      ...before,
      ...(changes.limit !== undefined && { amount: parseAmount(changes.limit, before.unit, 'limit') }),
      ...(changes.warn_at !== undefined && { warn_at: JSON.stringify(changes.warn_at) }),
      ...(changes.mode !== undefined && { mode: changes.mode }),
    }
    await updateBudget(trx, after)
    const details = { before: toDetails(before), after: toDetails(after) }
    await record({ ...deps, db: trx }, actor, 'budget.update', after, details)
    return after
  })
  deps.usage.invalidate()
  return row
}

/** @throws ServiceError `insufficient_permissions` for a budget that the operator manages */
export async function removeBudget(
  deps: WriteDeps,
  actor: Actor,
  tenantId: string,
  id: string,
): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    await lockTenant({ db: trx }, tenantId)
    const row = await getBudgetRow(trx, tenantId, id)
    assertOwn(row, actor)
    await deleteBudget(trx, id)
    await record({ ...deps, db: trx }, actor, 'budget.delete', row, { before: toDetails(row) })
  })
  deps.usage.invalidate()
}

export function listBudgets(
  { db }: Pick<Dependencies, 'db'>,
  tenantId: string,
  { scope, agent, limit, after }: BudgetQuery,
): Promise<Page<BudgetRow>> {
  return readPage(
    { limit, after },
    {
      find: (id) => findBudget(db, tenantId, id),
      list: (most, last) => listBudgetPage(db, tenantId, { scope, agent }, most, last),
    },
  )
}

/** Lists the budgets that the operator has set on a key. */
export async function listOperatorBudgets(db: Database, tenantId: string): Promise<BudgetRow[]> {
  return (await listOfTenant(db, tenantId)).filter(({ managed_by }) => managed_by === 'operator')
}

/**
 * Replaces the budgets that the operator has set on a key. A budget of the tenant with the same unit and
 * period becomes the operator's.
 */
export async function replaceOperatorBudgets(
  deps: WriteDeps,
  actor: Actor,
  tenantId: string,
  { budgets }: OperatorBudgetsBody,
): Promise<void> {
  const scope = { type: 'key', id: tenantId } as const
  const wanted = budgets.map((each, index) =>
    toRow(deps, tenantId, { scope, ...each }, 'operator', `budgets[${index}].limit`),
  )
  assertDistinct(wanted)
  await deps.usage.flush()
  await deps.db.transaction().execute(async (trx) => {
    const within = { ...deps, db: trx }
    await lockTenant(within, tenantId)
    const known = (await listOfTenant(trx, tenantId)).filter(({ scope_kind }) => scope_kind === 'key')
    for (const row of known) {
      const isKept = wanted.some((other) => isSameSlot(row, other)) || row.managed_by === 'tenant'
      if (isKept) continue
      await deleteBudget(trx, row.id)
      await record(within, actor, 'budget.delete', row, { before: toDetails(row) })
    }
    for (const row of wanted) {
      const before = known.find((other) => isSameSlot(row, other))
      if (before === undefined) {
        await insertBudget(trx, row)
        await startCounter(within, row)
        await record(within, actor, 'budget.create', row, { after: toDetails(row) })
      } else if (JSON.stringify(toDetails(before)) !== JSON.stringify(toDetails(row))) {
        const after = { ...row, id: before.id, created_at: before.created_at }
        await updateBudget(trx, after)
        const details = { before: toDetails(before), after: toDetails(after) }
        await record(within, actor, 'budget.update', after, details)
      }
    }
  })
  deps.usage.invalidate()
}

/** Renders a budget with what it has spent in the current period. */
export async function renderBudget({ db, clock, budgets }: ReadDeps, row: BudgetRow): Promise<Budget> {
  const { startsAt: starts_at, endsAt } = budgets.findPeriod(row.period, clock.now())
  const isOfScope = row.scope_kind === 'key' || row.scope_kind === 'agent'
  const counter = isOfScope ? await findCounter(db, { budget_id: row.id, subject: '', starts_at }) : undefined
  const grants = isOfScope ? await sumGrants(db, [row.id], unixSeconds({ now: () => clock.now() })) : []
  const granted = Number(grants.find((grant) => grant.starts_at === starts_at)?.amount ?? 0)
  return {
    id: row.id,
    object: 'budget',
    scope: { type: row.scope_kind, id: row.scope_id },
    unit: row.unit,
    period: row.period,
    limit: renderAmount(row.amount, row.unit),
    ...(isOfScope ? renderCounter(row, granted, counter) : noAmounts),
    period_start: starts_at,
    resets_at: endsAt,
    warn_at: JSON.parse(row.warn_at),
    mode: row.mode,
    managed_by: row.managed_by,
    created_at: row.created_at,
  }
}

const noAmounts = { granted: null, booked: null, reserved: null, remaining: null, refused: null }

export function renderCounter(
  { amount: limit, unit }: Pick<BudgetRow, 'amount' | 'unit'>,
  granted: number,
  { booked, reserved, refused }: Pick<CounterRow, 'booked' | 'reserved' | 'refused'> = {
    booked: 0,
    reserved: 0,
    refused: 0,
  },
) {
  return {
    granted: renderAmount(granted, unit),
    booked: renderAmount(booked, unit),
    reserved: renderAmount(reserved, unit),
    remaining: renderAmount(Math.max(0, limit + granted - booked - reserved), unit),
    refused,
  }
}

async function assertScope(
  deps: AgentFinder,
  tenantId: string,
  { type, id }: BudgetCreation['scope'],
): Promise<void> {
  if (type === 'key') {
    if (id === tenantId) return
    throw new ServiceError('not_found', 'scope.id: must be the public id of the parent key in the request', {
      param: 'scope.id',
    })
  }
  const agent = await deps.agents.find(tenantId, id)
  if (agent === undefined)
    throw new ServiceError('not_found', `Agent with id '${id}' not found.`, { param: 'scope.id' })
  if (type === 'conversation' && agent.definition.conversations === undefined)
    throw new ServiceError('invalid_value', 'scope.type: this agent does not store conversations', {
      param: 'scope.type',
      code: 'conversations_off',
    })
}

function toRow(
  { random, clock }: Pick<WriteDeps, 'random' | 'clock'>,
  tenantId: string,
  creation: BudgetCreation,
  managed_by: BudgetRow['managed_by'],
  param = 'limit',
): BudgetRow {
  const { scope, unit, period, warn_at, mode } = creation
  return {
    id: newId('bud_', ID_LENGTH, random),
    parent_key_id: tenantId,
    ...{ scope_kind: scope.type, scope_id: scope.id, unit, period, mode, managed_by },
    amount: parseAmount(creation.limit, unit, param),
    warn_at: JSON.stringify(warn_at),
    created_at: unixSeconds(clock),
  }
}

function isSameSlot(one: BudgetRow, other: BudgetRow): boolean {
  return (
    one.scope_kind === other.scope_kind &&
    one.scope_id === other.scope_id &&
    one.unit === other.unit &&
    one.period === other.period
  )
}

function assertDistinct(rows: readonly BudgetRow[]): void {
  for (const [index, row] of rows.entries()) {
    if (rows.findIndex((other) => isSameSlot(row, other)) === index) continue
    const param = `budgets[${index}].period`
    throw new ServiceError(
      'invalid_value',
      `${param}: the list already has a budget for each ${row.period}`,
      {
        param,
      },
    )
  }
}

/** @throws ServiceError `conflict` */
function assertRoom(known: readonly BudgetRow[], row: BudgetRow): void {
  if (known.some((other) => isSameSlot(row, other)))
    throw new ServiceError(
      'conflict',
      'There is already a budget with this scope, unit and period; change that one.',
      { code: 'budget_exists' },
    )
  if (!isDefault(row) && known.filter((other) => !isDefault(other)).length >= MOST_BUDGETS)
    throw new ServiceError('conflict', `There are already ${MOST_BUDGETS} budgets; delete one first.`)
  const all = [...known, row]
  const ofKey = all.filter(({ scope_kind }) => scope_kind === 'key').length
  const ofAgents = Map.groupBy(
    all.filter(({ scope_kind }) => scope_kind !== 'key'),
    ({ scope_id }) => scope_id,
  )
  const most = Math.max(0, ...[...ofAgents.values()].map(({ length }) => length))
  if (ofKey + most > MOST_PER_CALL)
    throw new ServiceError('conflict', `At most ${MOST_PER_CALL} budgets may apply to one call.`)
}

/** Commands run with the permissions of an operator. @throws ServiceError `insufficient_permissions` */
export function assertOwn({ managed_by }: BudgetRow, { kind }: Actor): void {
  if (managed_by === 'tenant' || kind === 'command') return
  throw new ServiceError('insufficient_permissions', 'Only administrators can change this budget.')
}

function toDetails({ unit, period, amount, warn_at, mode, managed_by }: BudgetRow) {
  return { unit, period, limit: renderAmount(amount, unit), warn_at: JSON.parse(warn_at), mode, managed_by }
}

type BudgetAction = 'budget.create' | 'budget.update' | 'budget.delete' | 'budget.grant' | 'budget.adjust'

/** Records a change of a budget; runs in the transaction of the change. */
export function record(
  deps: AuditDeps,
  actor: Actor,
  action: BudgetAction,
  { id, parent_key_id: tenantId, scope_kind, scope_id }: BudgetRow,
  details: object,
): Promise<void> {
  const scope = { type: scope_kind, id: scope_id }
  return recordAudit(deps, actor, {
    action,
    target: { kind: 'budget', id },
    tenantId,
    details: { scope, ...details },
  })
}
