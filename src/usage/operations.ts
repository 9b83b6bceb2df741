/** Defines the usage operations. */
import { z } from 'zod'
import { ServiceError } from '../lib/errors.ts'
import { type Caller, GeneratedFile, operationsOf } from '../operations/operation.ts'
import { exportCalls, readCalls } from './calls.ts'
import type { Dependencies } from './dependencies.ts'
import { UsageCallList, UsageCallQuery, UsageExportQuery, UsageList, UsageQuery } from './schema.ts'
import type { UsageTracker } from './tracker.ts'
import { readUsage } from './usage.ts'

const { query } = operationsOf<Dependencies & { readonly usage: UsageTracker }>()('Usage', {
  callers: ['parent'],
})

const CSV = 'text/csv; charset=utf-8'

export const usageOperations = {
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
      description: 'Calls are deleted after `PARLEY_USAGE_RETENTION_DAYS` days; their daily totals are kept.',
    },
    input: UsageCallQuery,
    output: UsageCallList,
    run: ({ context: { deps, caller }, input: { key, ...rest } }) =>
      readCalls(deps, ownTenant(caller, key), rest),
  }),

  exportCalls: query({
    http: { method: 'GET', path: '/v1/usage/calls.csv' },
    rpc: false,
    response: { generated: CSV },
    docs: {
      summary: 'Export individual calls as CSV, newest first',
      description: 'Streams all calls that match the filters.',
    },
    input: UsageExportQuery,
    output: z.never(),
    run: ({ context: { deps, caller }, input: { key, ...rest } }) =>
      renderExport(exportCalls(deps, ownTenant(caller, key), rest)),
  }),
}

export function renderExport(pieces: AsyncIterable<string>): GeneratedFile {
  return new GeneratedFile({ mediaType: CSV, filename: 'calls.csv', pieces })
}

/** @throws ServiceError if `key` is not the caller's own key. */
function ownTenant({ tenantId }: Pick<Caller, 'tenantId'>, key = tenantId): string {
  if (key === tenantId) return key
  throw new ServiceError('insufficient_permissions', 'key: a parent key can only list its own calls', {
    param: 'key',
  })
}
