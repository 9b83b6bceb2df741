/** Defines the usage operations. */
import { z } from 'zod'
import { ServiceError } from '../lib/errors.ts'
import { reference } from '../lib/schema-bounds.ts'
import { operationsOf } from '../operations/operation.ts'
import { readCalls } from './calls.ts'
import type { Dependencies } from './dependencies.ts'
import { AgentLastDays, UsageCallList, UsageCallQuery, UsageList, UsageQuery } from './schema.ts'
import type { UsageTracker } from './tracker.ts'
import { readLastDays, readUsage } from './usage.ts'

const { query } = operationsOf<Dependencies & { readonly usage: UsageTracker }>()('Usage', {
  callers: ['parent'],
})

export const usageOperations = {
  lastDays: query({
    input: z.object({ agents: z.array(reference()).max(100).optional() }),
    output: AgentLastDays,
    run: ({ context: { deps, caller }, input }) => readLastDays(deps, caller.tenantId, input.agents),
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

  calls: query({
    http: { method: 'GET', path: '/v1/usage/calls' },
    docs: {
      summary: 'List individual calls, newest first',
      description: 'Calls are deleted after `PARLEY_USAGE_RETENTION_DAYS`; their daily sums are kept.',
    },
    input: UsageCallQuery,
    output: UsageCallList,
    run: async ({ context: { deps, caller }, input: { key = caller.tenantId, ...rest } }) => {
      if (key === caller.tenantId) return readCalls(deps, key, rest)
      throw new ServiceError('insufficient_permissions', 'key: a parent key can only list its own calls', {
        param: 'key',
      })
    },
  }),
}
