/** Creates the tRPC link of the clients, which batches calls and streams each chat separately. */

import { httpBatchLink, httpBatchStreamLink, splitLink, type TRPCLink } from '@trpc/client'
import { clientTransformer } from '../../src/operations/envelope.ts'
import type { AppRouter } from '../../src/server/api.ts'

/** Some proxies reject longer URLs. */
const MAX_URL_LENGTH = 4_000
/** The server's limit of calls in one request. */
const MAX_BATCH_SIZE = 10

export interface ApiLinkOptions {
  /** URL of the tRPC API, which ends in `/trpc`. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof fetch | undefined
}

/** Returns the terminating link of a typed client. */
export function createApiLink({ url, headers, fetch: ownFetch }: ApiLinkOptions): TRPCLink<AppRouter> {
  const options = {
    url,
    transformer: clientTransformer,
    headers,
    ...(ownFetch !== undefined && {
      fetch: ownFetch as (...request: Parameters<typeof fetch>) => Promise<Response>,
    }),
  }
  return splitLink({
    condition: ({ path }) => path.startsWith('chat.'),
    true: httpBatchStreamLink({ ...options, maxItems: 1 }),
    false: httpBatchLink({ ...options, maxURLLength: MAX_URL_LENGTH, maxItems: MAX_BATCH_SIZE }),
  })
}
