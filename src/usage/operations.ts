/** The operations on usage. */
import { z } from 'zod'
import { operationsOf } from '../operations/operation.ts'
import type { Dependencies } from './dependencies.ts'
import { AgentLastDays, UsageList, UsageQuery } from './schema.ts'
import type { UsageTracker } from './tracker.ts'
import { readLastDays, readUsage } from './usage.ts'

const define = operationsOf<Dependencies & { readonly usage: UsageTracker }>()

export const usageOperations = {
  lastDays: define({
    kind: 'query',
    auth: { callers: ['parent'] },
    input: z.object({}),
    output: AgentLastDays,
    run: ({ context: { deps, caller } }) => readLastDays(deps, caller.tenantId),
  }),

  list: define({
    kind: 'query',
    http: { method: 'GET', path: '/v1/usage' },
    auth: { callers: ['parent'] },
    docs: {
      tag: 'Usage',
      summary: 'Sum up calls by day, agent or model',
      description: 'Calls count for the day (UTC) they began on.',
    },
    input: UsageQuery,
    output: UsageList,
    run: ({ context: { deps, caller }, input }) => readUsage(deps, [caller.tenantId], input),
  }),
}
