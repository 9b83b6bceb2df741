/** Calls the tRPC API of the server that delivered the frame. */

import { createTRPCClient, httpBatchStreamLink, isTRPCClientError } from '@trpc/client'
import { clientTransformer } from '../../../src/operations/envelope.ts'
import type { AppRouter } from '../../../src/server/api.ts'
import { pacedFetch } from './paced-fetch.ts'
import type { ErrorResponse } from './to-failure.ts'

export type RpcClient = ReturnType<typeof createRpcClient>

/** Creates a client of the server that delivered the frame. Reads `headers` for each request. */
export function createRpcClient(
  apiKey: string,
  headers: () => Readonly<Record<string, string>> = () => ({}),
  fetch: typeof pacedFetch = pacedFetch,
) {
  return createTRPCClient<AppRouter>({
    links: [
      httpBatchStreamLink({
        url: '/trpc',
        transformer: clientTransformer,
        headers: () => ({ Authorization: `Bearer ${apiKey}`, ...headers() }),
        maxItems: 1,
        fetch: fetch as typeof globalThis.fetch,
      }),
    ],
  })
}

function requestIdOf(response: unknown): string | undefined {
  return response instanceof Response ? (response.headers.get('X-Request-Id') ?? undefined) : undefined
}

/** Returns the server's error; undefined if the server did not respond. */
export function toErrorResponse(thrown: unknown): ErrorResponse | undefined {
  if (!isTRPCClientError<AppRouter>(thrown)) return undefined
  const data: { httpStatus?: number; code?: string; retryAfterSeconds?: number | null } = thrown.data ?? {}
  if (data.httpStatus === undefined) return undefined
  return {
    status: data.httpStatus,
    code: data.code ?? '',
    retryAfterSeconds: data.retryAfterSeconds ?? undefined,
    requestId: requestIdOf(thrown.meta?.response),
  }
}
