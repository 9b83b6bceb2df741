/** `parley/client`: a typed client of a running Parley, for programs and pages. */
import { createTRPCClient, type TRPCClient } from '@trpc/client'
import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server'
import type { AppRouter } from '../../src/server/api.ts'
import { createDoorLink } from './link.ts'

export { isTRPCClientError, TRPCClientError } from '@trpc/client'

export type { AppRouter }

/** What each operation takes, by module and verb. */
export type Inputs = inferRouterInputs<AppRouter>
/** What each operation answers. */
export type Outputs = inferRouterOutputs<AppRouter>

/** Every operation as a typed call: `client.agents.list.query()`, `client.chat.stream.mutate(…)`. */
export type Client = TRPCClient<AppRouter>

/** Which server to call, and as whom. */
export interface ClientOptions {
  /** Where the server answers, such as `https://chat.example.org`. */
  readonly url: string | URL
  /** A parent key or an agent key; a page with a session of the console needs none. */
  readonly key?: string
  /** Sent along with every call. */
  readonly headers?: Readonly<Record<string, string>>
  /** Instead of the one that is global. */
  readonly fetch?: typeof fetch
}

/**
 * A client of the tRPC API. Calls that are made at once go in one request; what fails is a `TRPCClientError`, whose `data` tells
 * `httpStatus`, `code`, `reason`, `param` and `retryAfterSeconds`.
 * @throws TypeError when `url` is none.
 */
export function createClient({ url, key, headers = {}, fetch }: ClientOptions): Client {
  const server = new URL(url)
  const endpoint = new URL(`${server.pathname.replace(/\/+$/, '')}/trpc`, server)
  return createTRPCClient<AppRouter>({
    links: [
      createDoorLink({
        url: endpoint.href,
        fetch,
        headers: {
          // What another site's form could not send.
          'X-Requested-With': 'parley',
          ...headers,
          ...(key !== undefined && { Authorization: `Bearer ${key}` }),
        },
      }),
    ],
  })
}
