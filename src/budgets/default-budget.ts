/** Creates the daily budget of PARLEY_BUDGET_DEFAULT_AGENT_USD for new agents. */
import type { Config } from '../config/config.ts'
import { type Actor, type AuditDeps, recordAudit } from '../identity/audit.ts'
import { type Clock, unixSeconds } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { type BudgetRow, insertBudget, listOfScopes } from './budget-store.ts'
import { startCounter } from './counters.ts'
import type { SpentBefore } from './dependencies.ts'
import { createPeriods } from './periods.ts'
import { DEFAULT_WARN_AT, renderAmount } from './schema.ts'

type DefaultBudgetDeps = AuditDeps & {
  readonly clock: Clock
  readonly config: Pick<Config, 'budgets'>
  readonly usage: Pick<SpentBefore, 'sumSpent'>
}

/**
 * Gives each of these agents the default budget, unless it has a daily budget in US dollars. Runs in the
 * transaction that creates or moves the agents.
 */
export async function addDefaultBudgets(
  deps: DefaultBudgetDeps,
  actor: Actor,
  tenantId: string,
  agentIds: readonly string[],
): Promise<void> {
  const { defaultAgentNanoUsd: amount, timeZone } = deps.config.budgets
  if (amount === undefined || agentIds.length === 0) return
  const known = (await listOfScopes(deps.db, agentIds)).filter(isDefault)
  const budgets = { findPeriod: createPeriods(timeZone) }
  for (const agentId of agentIds) {
    if (known.some(({ scope_id }) => scope_id === agentId)) continue
    const row: BudgetRow = {
      id: newId('bud_', 24, deps.random),
      parent_key_id: tenantId,
      ...{ scope_kind: 'agent', scope_id: agentId, unit: 'usd', period: 'day', amount },
      ...{ warn_at: DEFAULT_WARN_AT, mode: 'enforce', managed_by: 'tenant' },
      created_at: unixSeconds(deps.clock),
    }
    await insertBudget(deps.db, row)
    await startCounter({ ...deps, budgets }, row)
    await recordAudit(deps, actor, {
      action: 'budget.create',
      target: { kind: 'budget', id: row.id },
      tenantId,
      details: {
        scope: { type: 'agent', id: agentId },
        after: { unit: 'usd', period: 'day', limit: renderAmount(amount, 'usd'), is_default: true },
      },
    })
  }
}

/** Returns whether a budget is of the kind that each agent may have by default. */
export function isDefault({ scope_kind, unit, period }: BudgetRow): boolean {
  return scope_kind === 'agent' && unit === 'usd' && period === 'day'
}
