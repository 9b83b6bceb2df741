/** Names a budget by what it applies to. */
import { useQuery } from '@tanstack/react-query'
import { agentNamesQuery } from '../agents/queries.ts'
import { t } from '../strings/language.ts'
import type { Budget } from './queries.ts'

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
