/** The console's way to its server: typed calls, several in one request, chats as streams. Decision: 10; measurements.md 4. */

import { QueryClient } from '@tanstack/react-query'
import { createTRPCClient, httpBatchLink, httpBatchStreamLink, splitLink } from '@trpc/client'
import superjson from 'superjson'
import type { AppRouter } from '../src/rpc/router.ts'
import { toFailure } from './failure.ts'

const options = {
  url: '/trpc',
  transformer: superjson,
  // What another site's form could not send. Security: 2.3.
  headers: { 'X-Requested-With': 'parley' },
} as const

/** Longer addresses are refused by some proxies. */
const LONGEST_URL = 4_000

export const api = createTRPCClient<AppRouter>({
  links: [
    splitLink({
      condition: ({ path }) => path.startsWith('chat.'),
      true: httpBatchStreamLink({ ...options, maxItems: 1 }),
      false: httpBatchLink({ ...options, maxURLLength: LONGEST_URL }),
    }),
  ],
})

const MOST_RETRIES = 2

/** A refusal will be the same the next time; a server that was away may be back. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      retry: (count, thrown) => toFailure(thrown).status >= 500 && count < MOST_RETRIES,
      networkMode: 'always',
    },
    mutations: { networkMode: 'always' },
  },
})
