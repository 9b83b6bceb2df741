/** What the server answers, by the names the pages use. Types only: nothing of the server is in the browser. */
import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server'
import type { AppRouter } from '../src/server/api.ts'

export type Inputs = inferRouterInputs<AppRouter>
export type Outputs = inferRouterOutputs<AppRouter>

export type AgentDetail = Outputs['agents']['get']
export type AgentListItem = Outputs['agents']['list']['data'][number]
export type AgentVersion = Outputs['agents']['versions']['data'][number]
export type DefinitionFormat = AgentDetail['format']
export type ModelPolicy = Outputs['agents']['modelPolicy']
export type ModelChoice = Outputs['models']['choices'][number]
