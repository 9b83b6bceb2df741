/** Exports `parley/client`, a typed tRPC client for programs and web pages. */
import { createTRPCClient, type TRPCClient } from '@trpc/client'
import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server'
import type { AppRouter } from '../../src/server/api.ts'
import { createApiLink } from './link.ts'

export { isTRPCClientError, TRPCClientError } from '@trpc/client'

export type { AppRouter }

/** Input types of the operations, by module and verb. */
export type Inputs = inferRouterInputs<AppRouter>
/** Output types of the operations, by module and verb. */
export type Outputs = inferRouterOutputs<AppRouter>

/**
 * A client with one typed call per operation, such as `client.agents.list.query()` or
 * `client.chat.stream.mutate(…)`.
 */
export type Client = TRPCClient<AppRouter>

export interface ClientOptions {
  /** The server's URL, such as `https://chat.example.org`. */
  readonly url: string | URL
  /** A parent key or an agent key; not needed on a page with a console session. */
  readonly key?: string
  /** Extra headers for every call. */
  readonly headers?: Readonly<Record<string, string>>
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof fetch
}

/**
 * Creates a client for the tRPC API, which batches calls made at the same time. Failed calls reject with a
 * `TRPCClientError`; its `data` has `httpStatus`, `code`, `reason`, `param` and `retryAfterSeconds`. @throws
 * TypeError if `url` is not a valid URL.
 */
export function createClient({ url, key, headers = {}, fetch }: ClientOptions): Client {
  const server = new URL(url)
  const endpoint = new URL(`${server.pathname.replace(/\/+$/, '')}/trpc`, server)
  return createTRPCClient<AppRouter>({
    links: [
      createApiLink({
        url: endpoint.href,
        fetch,
        headers: {
          // Prevents CSRF, because a form on another site cannot send this header.
          'X-Requested-With': 'parley',
          ...headers,
          ...(key !== undefined && { Authorization: `Bearer ${key}` }),
        },
      }),
    ],
  })
}
