/** Defines the usage operations. */
import { z } from 'zod'
import { operationsOf } from '../operations/operation.ts'
import type { Dependencies } from './dependencies.ts'
import { AgentLastDays, UsageList, UsageQuery } from './schema.ts'
import type { UsageTracker } from './tracker.ts'
import { readLastDays, readUsage } from './usage.ts'

const { query } = operationsOf<Dependencies & { readonly usage: UsageTracker }>()('Usage', {
  callers: ['parent'],
})

export const usageOperations = {
  lastDays: query({
    input: z.object({}),
    output: AgentLastDays,
    run: ({ context: { deps, caller } }) => readLastDays(deps, caller.tenantId),
  }),

  list: query({
    http: { method: 'GET', path: '/v1/usage' },
    docs: {
      summary: 'Get usage by day, agent or model',
      description: 'Assigns each call to the UTC day on which it started.',
    },
    input: UsageQuery,
    output: UsageList,
    run: ({ context: { deps, caller }, input }) => readUsage(deps, [caller.tenantId], input),
  }),
}
