/** Defines the queries of budgets. */
import { type QueryClient, queryOptions } from '@tanstack/react-query'
import { api, type Outputs } from '../api.ts'

export type Budget = Outputs['budgets']['get']
export type Subject = Outputs['budgets']['subjects']['data'][number]
export type Scope = Budget['scope']['type']
export type Unit = Budget['unit']
export type Period = Budget['period']
export const periods = ['day', 'week', 'month', 'total'] as const satisfies readonly Period[]

/** Larger than the number of budgets that a key can have. */
const ALL = 100
const STALE_MS = 30_000

export const budgetsQuery = queryOptions({
  queryKey: ['budgets', 'list'],
  queryFn: async () => (await api.budgets.list.query({ limit: ALL })).data,
  staleTime: STALE_MS,
})

export const budgetQuery = (id: string) =>
  queryOptions({
    queryKey: ['budgets', 'one', id],
    queryFn: () => api.budgets.get.query({ budget_id: id }),
  })

export const subjectsQuery = (id: string) =>
  queryOptions({
    queryKey: ['budgets', 'subjects', id],
    queryFn: async () => (await api.budgets.subjects.query({ budget_id: id, limit: ALL })).data,
  })

const DAY_MS = 86_400_000
/** The number of days, including today, whose calls predict the next ones. */
const RATE_DAYS = 7

/** The sums of the last days for one agent, or for all calls of the key. */
export const recentDaysQuery = (agent: string | undefined) => {
  const toDay = (ms: number) => new Date(ms).toISOString().slice(0, 10)
  const days = { from: toDay(Date.now() - (RATE_DAYS - 1) * DAY_MS), to: toDay(Date.now()) }
  return queryOptions({
    queryKey: ['usage', 'recent', agent, days],
    queryFn: async () => (await api.usage.list.query({ ...days, agent, group_by: 'day' })).data,
    staleTime: 5 * 60_000,
  })
}

export function refreshBudgets(queries: QueryClient): Promise<void> {
  return queries.invalidateQueries({
    predicate: ({ queryKey: [first, , third] }) => first === 'budgets' || third === 'policy',
  })
}
