/** The console's way to its server: typed calls, several in one request, chats as streams. */
import { QueryClient } from '@tanstack/react-query'
import { createTRPCClient, type TRPCLink } from '@trpc/client'
import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server'
import { tap } from '@trpc/server/observable'
import type { AppRouter } from '../src/server/api.ts'
import { isSignedOut, ProxyRejection, toFailure } from './failure.ts'
import { createDoorLink } from './rpc/link.ts'
import { reportSessionEnd } from './session.ts'

const apiLink = createDoorLink({
  url: '/trpc',
  // What another site's form could not send.
  headers: { 'X-Requested-With': 'parley' },
  fetch: async (...request: Parameters<typeof fetch>) => {
    const answer = await fetch(...request)
    const isOurs = answer.headers.get('content-type')?.startsWith('application/json') ?? false
    if (answer.status === 401 && !isOurs) throw new ProxyRejection()
    return answer
  },
})

/** Reports the end of the session on every 401, except for an invalid sign-in link. */
const watchSession: TRPCLink<AppRouter> =
  () =>
  ({ next, op }) => {
    const error = (thrown: unknown) => {
      if (op.path !== 'manager.signIn' && isSignedOut(thrown)) reportSessionEnd()
    }
    return next(op).pipe(tap({ error }))
  }

export const api = createTRPCClient<AppRouter>({
  links: [watchSession, apiLink],
})

const MAX_RETRIES = 2

/** Retries only server errors: other rejections would repeat. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      retry: (count, thrown) => toFailure(thrown).status >= 500 && count < MAX_RETRIES,
      networkMode: 'always',
    },
    mutations: { networkMode: 'always' },
  },
})

export type Inputs = inferRouterInputs<AppRouter>
export type Outputs = inferRouterOutputs<AppRouter>

export type AgentDetail = Outputs['agents']['get']
export type AgentListItem = Outputs['agents']['list']['data'][number]
export type AgentVersion = Outputs['agents']['versions']['data'][number]
export type DefinitionFormat = AgentDetail['format']
export type ModelPolicy = Outputs['agents']['modelPolicy']
export type ModelChoice = Outputs['models']['choices'][number]
