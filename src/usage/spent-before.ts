/** Sums what a key or an agent has used before a budget is created. */
import type { SpentBefore } from '../budgets/dependencies.ts'
import { dayOf } from './days.ts'
import { sumSpentSince } from './store.ts'

export const sumSpent: SpentBefore['sumSpent'] = (db, { tenantId, agentId }, sinceSeconds) => {
  const owner =
    agentId === undefined
      ? ({ kind: 'parent', id: tenantId } as const)
      : ({ kind: 'agent', id: agentId } as const)
  return sumSpentSince(db, owner, tenantId, dayOf(sinceSeconds * 1000))
}
