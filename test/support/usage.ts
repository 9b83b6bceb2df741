/** Sends short chats, and reads their usage and the budget counters. */
import type { Caller } from '../../src/operations/operation.ts'
import type { UsageEntry, UsageList, UsageSums } from '../../src/usage/schema.ts'
import type { Answer, TestApp } from './app.ts'

export function sendChat(app: TestApp, content: string, more: object = {}, key = app.key): Promise<Answer> {
  const body = { model: 'mock', messages: [{ role: 'user', content }], ...more }
  return app.call('POST', '/v1/chat/completions', { key, body })
}

/** Returns the response body of `GET /v1/usage`. */
export async function listUsage(app: TestApp, query = '', key = app.key): Promise<UsageList> {
  const { status, body, text } = await app.call('GET', `/v1/usage${query}`, { key })
  if (status !== 200) throw new Error(text)
  return body
}

/** Returns the totals of the last 30 days. */
export async function totalUsage(app: TestApp, key = app.key): Promise<UsageSums> {
  return (await listUsage(app, '', key)).total
}

/** Returns the value of `grouping` and the number of requests of each usage entry. */
export async function countBy(app: TestApp, grouping: 'day' | 'agent' | 'model', query = '') {
  const { data } = await listUsage(app, `?group_by=${grouping}${query}`)
  return data.map((entry: UsageEntry) => [entry[grouping], entry.requests])
}

/** Returns the app's parent key as the owner of a budget. */
export function ownerOf(app: TestApp): Caller {
  return { kind: 'parent', tenantId: app.key.slice(4, 16) }
}

/** Lists the used and the reserved tokens of all budgets. */
export function listBudgetCounters({ service }: Pick<TestApp, 'service'>) {
  return service.deps.db
    .selectFrom('budget_counters')
    .innerJoin('budgets', 'budgets.id', 'budget_counters.budget_id')
    .select(['period', 'booked as used', 'reserved'])
    .orderBy('period')
    .execute()
}

/** Returns a row for the table `budgets` that limits a key to a number of tokens each day. */
export function tokensPerDay(tenantId: string, amount: number) {
  const scope = { parent_key_id: tenantId, scope_kind: 'key', scope_id: tenantId } as const
  const limit = { unit: 'tokens', period: 'day', amount, mode: 'enforce' } as const
  return { id: `bud_of_${tenantId}`, ...scope, ...limit, managed_by: 'operator', created_at: 1 } as const
}
