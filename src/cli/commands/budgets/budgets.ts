/** The `budgets` commands list, set, raise, correct and delete budgets. */
import { createAgentDirectory } from '../../../agents/cache.ts'
import { type BudgetRow, listByIds, listOfTenant } from '../../../budgets/budget-store.ts'
import {
  type AgentFinder,
  changeBudget,
  createBudget,
  removeBudget,
  renderBudget,
  type WriteDeps,
} from '../../../budgets/budgets.ts'
import { addAdjustment, addGrant, renderAdjustment, renderGrant } from '../../../budgets/entries.ts'
import { createPeriods } from '../../../budgets/periods.ts'
import { AdjustmentBody, type Budget, BudgetCreation, GrantBody } from '../../../budgets/schema.ts'
import type { Actor } from '../../../identity/audit.ts'
import { StartupError } from '../../../lib/errors.ts'
import { sumSpent } from '../../../usage/spent-before.ts'
import { chooseParentKey, commandActor, createDeps, withDatabase } from '../../installation.ts'
import { print, printResult, renderTable } from '../../output.ts'

interface KeyOptions {
  readonly key?: string
  readonly json?: boolean
}

export function list({ key, json = false }: KeyOptions): Promise<void> {
  return withBudgets(async ({ deps }) => {
    const rows = await listOfTenant(deps.db, await chooseParentKey(deps.db, key))
    const budgets = await Promise.all(rows.map((row) => renderBudget(deps, row)))
    if (json) return print(JSON.stringify(budgets))
    const cells = budgets.map(({ id, scope, unit, period, mode, managed_by, ...amounts }) => [
      ...[id, scope.type, scope.type === 'key' ? '-' : scope.id, unit, period, amounts.limit],
      ...[amounts.booked ?? '-', amounts.reserved ?? '-', amounts.remaining ?? '-', mode, managed_by],
    ])
    print(renderTable(columns, cells))
  })
}

const columns = [
  ...['ID', 'SCOPE', 'AGENT', 'UNIT', 'PERIOD', 'LIMIT'],
  ...['BOOKED', 'RESERVED', 'REMAINING', 'MODE', 'MANAGED BY'],
]

interface SetOptions extends KeyOptions {
  readonly period: string
  readonly limit: string
  readonly unit?: string
  readonly agent?: string
  readonly each?: string
  readonly mode?: string
  readonly warnAt?: readonly number[]
}

/** Creates a budget, or changes the one with the same scope, unit and period. */
export function set({ key, json = false, ...options }: SetOptions): Promise<void> {
  return withBudgets(async ({ deps, actor }) => {
    const tenantId = await chooseParentKey(deps.db, key)
    const creation = parse(BudgetCreation, toCreation(tenantId, options), optionOf)
    const known = (await listOfTenant(deps.db, tenantId)).find((row) => isSame(row, creation))
    const { limit, warn_at, mode } = creation
    const changes = {
      limit,
      ...(options.warnAt !== undefined && { warn_at }),
      ...(options.mode !== undefined && { mode }),
    }
    const row =
      known === undefined
        ? await createBudget(
            deps,
            actor,
            tenantId,
            creation,
            options.agent === undefined ? 'operator' : 'tenant',
          )
        : await changeBudget(deps, actor, tenantId, known.id, changes)
    const budget = await renderBudget(deps, row)
    printResult(json, budget, `${known === undefined ? 'created' : 'changed'} ${describe(budget)}`)
  })
}

function toCreation(tenantId: string, { agent, each, ...options }: Omit<SetOptions, 'key' | 'json'>) {
  if (agent === undefined && each !== undefined) throw new StartupError('--each: requires --agent.')
  const { unit, period, limit, mode, warnAt } = options
  return {
    scope: { type: agent === undefined ? 'key' : (each ?? 'agent'), id: agent ?? tenantId },
    ...{ unit, period, limit, mode, warn_at: warnAt },
  }
}

const optionNames: Readonly<Record<string, string>> = {
  scope: 'each',
  warn_at: 'warn-at',
  expires_at: 'expires',
}

function optionOf(field: string): string {
  return `--${optionNames[field] ?? field}`
}

function isSame(row: BudgetRow, { scope, unit, period }: BudgetCreation): boolean {
  return (
    row.scope_kind === scope.type && row.scope_id === scope.id && row.unit === unit && row.period === period
  )
}

function describe({ id, scope, unit, period, limit }: Budget): string {
  return `${id}: ${limit} ${unit} for the ${scope.type}, period ${period}`
}

interface EntryOptions {
  readonly reason: string
  readonly subject?: string
  readonly expires?: number
  readonly json?: boolean
}

export function grant(id: string, amount: string, options: EntryOptions): Promise<void> {
  return withBudgets(async ({ deps, actor }) => {
    const { reason, subject, expires, json = false } = options
    const body = parse(GrantBody, { amount, reason, subject, expires_at: expires }, optionOf)
    const entry = await addGrant(deps, actor, await findTenant(deps, id), id, body)
    const granted = renderGrant(entry)
    printResult(json, granted, `granted ${granted.amount} to ${id}`)
  })
}

export function adjust(id: string, amount: string, options: EntryOptions): Promise<void> {
  return withBudgets(async ({ deps, actor }) => {
    const { reason, subject, json = false } = options
    const body = parse(AdjustmentBody, { amount, reason, subject }, optionOf)
    const entry = await addAdjustment(deps, actor, await findTenant(deps, id), id, body)
    const adjusted = renderAdjustment(entry)
    printResult(json, adjusted, `adjusted ${id} by ${adjusted.amount}`)
  })
}

export function remove(id: string, { yes, json = false }: { yes?: boolean; json?: boolean }): Promise<void> {
  return withBudgets(async ({ deps, actor }) => {
    const tenantId = await findTenant(deps, id)
    if (yes !== true)
      throw new StartupError(`This deletes the budget ${id} and its counters; add --yes to confirm.`)
    await removeBudget(deps, actor, tenantId, id)
    printResult(json, { id, object: 'budget.deleted', deleted: true }, `deleted ${id}`)
  })
}

async function findTenant({ db }: Pick<WriteDeps, 'db'>, id: string): Promise<string> {
  const [row] = await listByIds(db, [id])
  if (row !== undefined) return row.parent_key_id
  throw new StartupError(`There is no budget '${id}'; \`parley budgets list\` shows all budgets of a key.`)
}

/** @throws StartupError that names the option */
function parse<T>(
  schema: {
    safeParse(value: unknown): {
      readonly data?: T | undefined
      readonly error?:
        | { readonly issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[] }
        | undefined
    }
  },
  value: unknown,
  nameOf: (field: string) => string,
): T {
  const { data, error } = schema.safeParse(value)
  if (data !== undefined) return data
  const [issue] = error?.issues ?? []
  throw new StartupError(`${nameOf(String(issue?.path[0]))}: ${issue?.message}.`)
}

interface Access {
  readonly deps: WriteDeps & AgentFinder
  readonly actor: Actor
}

function withBudgets(run: (access: Access) => Promise<void>): Promise<void> {
  return withDatabase((db, config, clock) => {
    const deps = {
      ...createDeps(db, clock),
      agents: createAgentDirectory(db, clock),
      budgets: { findPeriod: createPeriods(config.budgets.timeZone) },
      // Servers write what they have recorded at short intervals, and forget cached budgets soon.
      usage: { async flush() {}, invalidate() {}, sumSpent },
    }
    return run({ deps, actor: commandActor() })
  })
}
