/** Creates the console's tRPC client and query cache. */
import { QueryClient } from '@tanstack/react-query'
import { createTRPCClient, type TRPCLink } from '@trpc/client'
import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server'
import { tap } from '@trpc/server/observable'
import type { AppRouter } from '../src/server/api.ts'
import { isSignedOut, ProxyRejection, toFailure } from './failure.ts'
import { fetchStream } from './fetch-stream.ts'
import { createApiLink } from './rpc/link.ts'
import { reportSessionEnd } from './session.ts'

const apiLink = createApiLink({
  url: '/trpc',
  // Prevents CSRF, because a form on another site cannot send this header.
  headers: { 'X-Requested-With': 'parley' },
  fetch: async (...request: Parameters<typeof fetch>) => {
    const isStream = new Headers(request[1]?.headers).get('trpc-accept') === 'application/jsonl'
    const answer = await (isStream ? fetchStream : fetch)(...request)
    const isOurs = answer.headers.get('content-type')?.startsWith('application/json') ?? false
    if (answer.status === 401 && !isOurs) throw new ProxyRejection()
    return answer
  },
})

/**
 * Reports that the session has ended when a call returns 401, except when the call is a sign-in, or one that
 * the user has not caused (`isBackground`).
 */
const watchSession: TRPCLink<AppRouter> =
  () =>
  ({ next, op }) => {
    const error = (thrown: unknown) => {
      const isUsers = op.path !== 'manager.signIn' && op.context.isBackground !== true
      if (isUsers && isSignedOut(thrown)) reportSessionEnd()
    }
    return next(op).pipe(tap({ error }))
  }

export const api = createTRPCClient<AppRouter>({
  links: [watchSession, apiLink],
})

const MAX_RETRIES = 2

/** Retries server errors only, because client errors would occur again. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      retry: (count, thrown) => toFailure(thrown).status >= 500 && count < MAX_RETRIES,
      networkMode: 'always',
      // Off by default with `networkMode: 'always'`.
      refetchOnReconnect: true,
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
