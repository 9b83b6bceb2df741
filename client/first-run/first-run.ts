/** Reads the progress of the first steps with Parley, and stores what only this browser knows. */
import { useLocalStorage } from '@mantine/hooks'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { modelsQuery, newestAgentsQuery } from '../agents/queries.ts'
import type { ModelChoice } from '../api.ts'
import { api, queryClient } from '../api.ts'
import { useMe } from '../shell/use-me.ts'

export interface FirstRun {
  readonly isModelConnected: boolean
  readonly hasAgent: boolean
  readonly isTried: boolean
  readonly isEmbedded: boolean
  /** The newest agent, for the links of the last two steps. */
  readonly agentId: string | undefined
}

/** The stored part, by parent key. */
interface Stored {
  /** The embed code of one of the key's agents was copied in this browser. */
  readonly isEmbedded?: boolean
  /** The user has hidden the checklist on the Agents page. */
  readonly isHidden?: boolean
  /** Whether all steps were complete when the checklist was last loaded. */
  readonly isComplete?: boolean
}

const hasCallsQuery = queryOptions({
  queryKey: ['usage', 'has-calls'],
  queryFn: async () => (await api.usage.calls.query({ limit: 1 })).data.length > 0,
  staleTime: 10_000,
})

/** Prefetches the checklist's data in one request. */
export function prefetchFirstRun(): void {
  void queryClient.prefetchQuery(newestAgentsQuery)
  void queryClient.prefetchQuery(modelsQuery)
  void queryClient.prefetchQuery(hasCallsQuery)
}

/** Makes the checklist and each agent's last day of use reload after a call. */
export function reportCall(): void {
  void queryClient.invalidateQueries({ queryKey: hasCallsQuery.queryKey })
  void queryClient.invalidateQueries({ queryKey: ['agents', 'last-days'] })
}

/** Returns the stored part for the active key, and a function that changes it. */
export function useStoredFirstRun(): readonly [Stored, (changes: Stored) => void] {
  const { parent_key: parentKey } = useMe()
  const [stored, setStored] = useLocalStorage<Stored>({
    key: `parley-first-run-${parentKey}`,
    defaultValue: {},
    getInitialValueInEffect: false,
  })
  return [stored, (changes) => setStored((now) => ({ ...now, ...changes }))]
}

interface LoadedFirstRun {
  /** Undefined until it has been loaded. */
  readonly progress: FirstRun | undefined
  /** The reason why loading has failed; also set while loading is retried. */
  readonly error: Error | null
}

export function useFirstRun(): LoadedFirstRun {
  const [stored, change] = useStoredFirstRun()
  const agents = useQuery(newestAgentsQuery)
  const models = useQuery(modelsQuery)
  const calls = useQuery(hasCallsQuery)
  const isKnown = agents.data !== undefined && models.data !== undefined && calls.data !== undefined
  const progress: FirstRun = {
    isModelConnected: models.data?.some(({ provider }) => provider !== MOCK) ?? false,
    hasAgent: (agents.data?.data.length ?? 0) > 0,
    isTried: calls.data ?? false,
    isEmbedded: stored.isEmbedded ?? false,
    agentId: agents.data?.data[0]?.id,
  }
  const isComplete = isKnown ? countSteps(progress) === STEPS : stored.isComplete
  // biome-ignore lint/correctness/useExhaustiveDependencies: `change` is a new function after each render
  useEffect(() => {
    if (isComplete !== undefined && isComplete !== stored.isComplete) change({ isComplete })
  }, [isComplete, stored.isComplete])
  const failed = [agents, models, calls].find(({ failureReason }) => failureReason !== null)
  return { progress: isKnown ? progress : undefined, error: failed?.failureReason ?? null }
}

export const STEPS = 4

export function countSteps({ isModelConnected, hasAgent, isTried, isEmbedded }: FirstRun): number {
  return [isModelConnected, hasAgent, isTried, isEmbedded].filter(Boolean).length
}

const MOCK = 'mock'

/** Returns whether the newest answer of a model came from the built-in mock model. */
export function isAnsweredByMock(turns: readonly { readonly provider: string | null }[]): boolean {
  return turns.findLast(({ provider }) => provider !== null)?.provider === MOCK
}

/** Returns whether the built-in mock model is the only one; false while the models load. */
export function hasOnlyMock(models: readonly ModelChoice[] | undefined): boolean {
  return models !== undefined && models.length > 0 && models.every(({ provider }) => provider === MOCK)
}
