/** Saves a draft, and finds out when somebody else was faster. Decision: 6 (`If-Match`). */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../../api.ts'
import { problemOf, toFailure } from '../../failure.ts'
import type { Draft, SavedText } from './use-draft.ts'

export interface Saving {
  /** Saves over the version the draft began with, or over that one. */
  save(over?: number): void
  readonly isSaving: boolean
  readonly error: string | undefined
  /** What somebody else saved meanwhile. */
  readonly conflict: SavedText | undefined
  endConflict(): void
}

export function useSave(agentId: string, draft: Draft): Saving {
  const queries = useQueryClient()
  const [conflict, setConflict] = useState<SavedText>()
  const { mutate, isPending, error } = useMutation({
    mutationFn: async (over: number) => {
      const { text, format } = draft
      const sent = { agent_id: agentId, yaml: text, format, if_match: `"${over}"` }
      const { version } = await api.agents.replace.mutate(sent)
      return { text, format, version }
    },
    onSuccess: async (saved) => {
      setConflict(undefined)
      draft.rebase(saved)
      await queries.invalidateQueries({ queryKey: ['agents'] })
    },
    onError: async (thrown) => {
      if (toFailure(thrown).status !== 412) return
      const { yaml, format, version } = await api.agents.get.query({ agent_id: agentId })
      setConflict({ text: yaml, format, version })
    },
  })
  return {
    save: (over = draft.saved.version) => mutate(over),
    isSaving: isPending,
    error: toFailure(error).status === 412 ? undefined : problemOf(error),
    conflict,
    endConflict: () => setConflict(undefined),
  }
}
