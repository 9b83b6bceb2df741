/** How the tRPC API is spoken to: several calls in one request, each chat as a stream of its own. */

import { httpBatchLink, httpBatchStreamLink, splitLink, type TRPCLink } from '@trpc/client'
import { clientTransformer } from '../../src/operations/envelope.ts'
import type { AppRouter } from '../../src/server/api.ts'

/** Longer addresses are refused by some proxies. */
const LONGEST_URL = 4_000
/** What the door takes in one request. */
const MOST_CALLS = 10

/** Where the door is, and what is sent along. */
export interface DoorOptions {
  /** The door's own address, which ends in `/trpc`. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Instead of the one that is global. */
  readonly fetch?: typeof fetch | undefined
}

/** The last link of a typed client. */
export function createDoorLink({ url, headers, fetch: ownFetch }: DoorOptions): TRPCLink<AppRouter> {
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
    false: httpBatchLink({ ...options, maxURLLength: LONGEST_URL, maxItems: MOST_CALLS }),
  })
}
