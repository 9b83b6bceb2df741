/** Creates the clients' tRPC link, which batches calls and reads each stream separately. */

import { httpBatchLink, httpBatchStreamLink, splitLink, type TRPCLink } from '@trpc/client'
import { clientTransformer } from '../../src/operations/envelope.ts'
import type { AppRouter } from '../../src/server/api.ts'

/** Maximum URL length in characters, because some proxies reject longer URLs. */
const MAX_URL_LENGTH = 4_000
/** Maximum number of calls in one request; the server has the same limit. */
const MAX_BATCH_SIZE = 10

const streamedQueries = [
  'artifacts.watch',
  'conversations.changes',
  'conversations.follow',
  'conversations.waiting',
  'visitor.follow',
]

export interface ApiLinkOptions {
  /** The tRPC API's URL, which ends in `/trpc`. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof fetch | undefined
}

/** Returns the terminating link for a typed client. */
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
    condition: ({ path }) => path.startsWith('chat.') || streamedQueries.includes(path),
    true: httpBatchStreamLink({ ...options, maxItems: 1 }),
    false: httpBatchLink({ ...options, maxURLLength: MAX_URL_LENGTH, maxItems: MAX_BATCH_SIZE }),
  })
}
