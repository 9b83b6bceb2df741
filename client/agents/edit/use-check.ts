/** What the server would say to the text, asked while one types: the last answer counts. */
import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { api } from '../../api.ts'
import type { DefinitionFormat, Outputs } from '../../types.ts'

export type Problem = NonNullable<Outputs['agents']['check']['problem']>

export interface Check {
  /** Null while nothing is known to be wrong. */
  readonly problem: Problem | null
  /** The newest text was found to be good. */
  readonly isGood: boolean
}

const PAUSE_MS = 300

export function useCheck(text: string, format: DefinitionFormat): Check {
  const [yaml] = useDebouncedValue(text, PAUSE_MS)
  const { data, isPlaceholderData } = useQuery({
    queryKey: ['check', format, yaml],
    queryFn: ({ signal }) => api.agents.check.mutate({ yaml, format }, { signal }),
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false,
  })
  const problem = data?.problem ?? null
  return { problem, isGood: data !== undefined && problem === null && !isPlaceholderData && yaml === text }
}

/** The problem in a field's own words: the field is named beside it. */
export function describeProblem({ message, path }: Problem): string {
  const text = path !== null && message.startsWith(`${path}: `) ? message.slice(path.length + 2) : message
  return text.replace(/ \(line \d+, column \d+\)$/, '')
}
