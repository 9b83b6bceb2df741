/** Names a budget by what it applies to, and reports whether its name and forecast are loading. */
import { useQueries, useQuery } from '@tanstack/react-query'
import { agentNamesQuery } from '../agents/queries.ts'
import { t } from '../strings/language.ts'
import { type Budget, recentDaysQuery } from './queries.ts'

const named = { visitor: 'budgets.ofVisitors', conversation: 'budgets.ofConversations' } as const

/** Returns a function that names budgets; uses ids until the names have loaded. */
export function useBudgetNames(budgets: readonly Budget[]): (budget: Pick<Budget, 'scope'>) => string {
  const ids = budgets.flatMap(({ scope }) => (scope.type === 'key' ? [] : scope.id))
  const { data: names } = useQuery(agentNamesQuery(ids))
  return ({ scope: { type, id } }) => {
    if (type === 'key') return t('budgets.ofKey')
    const agent = names?.get(id) ?? id
    return type === 'agent' ? agent : t(named[type], { agent })
  }
}

/** Returns whether names and forecasts are still loading; pages without them would shift. */
export function useIsPending(budgets: readonly Budget[]): boolean {
  const ofAgents = budgets.flatMap(({ scope }) => (scope.type === 'key' ? [] : scope.id))
  const { isPending } = useQuery(agentNamesQuery(ofAgents))
  const needed = budgets.filter(({ booked, period }) => booked !== null && period !== 'day')
  const owners = new Set(needed.map(({ scope }) => (scope.type === 'key' ? undefined : scope.id)))
  const recent = useQueries({ queries: [...owners].map(recentDaysQuery) })
  return isPending || recent.some((one) => one.isPending)
}
