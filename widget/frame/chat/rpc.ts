/** Calls the tRPC API of the server that delivered the frame. */

import { createTRPCClient, httpBatchStreamLink, isTRPCClientError } from '@trpc/client'
import { clientTransformer } from '../../../src/operations/envelope.ts'
import type { ChatChunk, ChatRequest } from '../../../src/providers/chat-api.ts'
import type { AppRouter } from '../../../src/server/api.ts'
import { ChatFailure } from '../failure.ts'
import { pacedFetch } from './paced-fetch.ts'
import { type ErrorResponse, toFailure } from './to-failure.ts'
import type { AgentSelf, ChatBody, Transport } from './transport.ts'

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

/** Creates a transport to the server that delivered the frame. */
export function createRpcTransport(apiKey: string): Transport {
  const client = createRpcClient(apiKey)
  return {
    takesSystem: false,
    async *stream(body: ChatBody, signal: AbortSignal): AsyncGenerator<readonly ChatChunk[]> {
      let hasBegun = false
      try {
        const runs = await client.chat.stream.mutate(body as ChatRequest, { signal })
        for await (const run of runs) {
          hasBegun = true
          yield run
        }
      } catch (thrown) {
        throw new ChatFailure(toFailure(toErrorResponse(thrown), hasBegun), thrown)
      }
    },
    async readAgent(signal): Promise<AgentSelf> {
      try {
        return await client.agents.me.query(undefined, { signal })
      } catch (thrown) {
        throw new ChatFailure(toFailure(toErrorResponse(thrown), false), thrown)
      }
    },
  }
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
