/** Manages a definition's draft, its checks and its saves. */

import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import type { DefinitionFormat } from '../../api.ts'
import { api } from '../../api.ts'
import { problemOf, toFailure } from '../../failure.ts'
import { changeDefinition, readDefinition } from '../definition-text.ts'
import type { Path } from '../object-paths.ts'
import { listProblems, type Problem } from './list-problems.ts'

/** The saved text that a draft is based on; version 0 means that it is not saved yet. */
interface SavedText {
  readonly text: string
  readonly format: DefinitionFormat
  readonly version: number
}

export interface Draft {
  readonly text: string
  readonly format: DefinitionFormat
  readonly saved: SavedText
  readonly isDirty: boolean
  /** The parsed text, or the last valid parse while the text is invalid. */
  readonly value: Readonly<Record<string, unknown>>
  readonly isReadable: boolean
  setText(text: string): void
  /** Changes one value; `undefined` removes it. */
  change(path: Path, value: unknown): void
  /**
   * Changes the saved version that the draft is based on. Also replaces the draft's text if `text` is given.
   */
  rebase(saved: SavedText, text?: string): void
}

/** Creates a draft, which adopts newer saved versions while it has no local changes. */
export function useDraft(newest: SavedText): Draft {
  const [saved, setSaved] = useState(newest)
  const [text, setText] = useState(newest.text)
  const { format } = saved
  const isDirty = text !== saved.text
  const read = useMemo(() => readDefinition(text, format), [text, format])
  const lastRead = useRef<Readonly<Record<string, unknown>>>({})
  if (read !== undefined) lastRead.current = read
  const change = useCallback(
    (path: Path, value: unknown) => setText((now) => changeDefinition(now, format, path, value)),
    [format],
  )
  const rebase = useCallback((next: SavedText, replacing?: string) => {
    setSaved(next)
    if (replacing !== undefined) setText(replacing)
  }, [])
  useEffect(() => {
    if (!isDirty && newest.version > saved.version) rebase(newest, newest.text)
  }, [newest, isDirty, saved.version, rebase])
  return {
    text,
    format,
    saved,
    isDirty,
    value: lastRead.current,
    isReadable: read !== undefined,
    setText,
    change,
    rebase,
  }
}

export interface Saving {
  /**
   * Saves the draft, but only if `over` is still the newest version. Defaults to the version that the draft
   * is based on.
   */
  save(over?: number): void
  readonly isSaving: boolean
  readonly error: string | undefined
  /** The version that another user has saved since the draft was started. */
  readonly conflict: SavedText | undefined
  endConflict(): void
}

/** Saves the draft; `note` is what the user wrote about the new version. */
export function useSave(agentId: string, draft: Draft, note = ''): Saving {
  const queries = useQueryClient()
  const [conflict, setConflict] = useState<SavedText>()
  const { mutate, isPending, error } = useMutation({
    mutationFn: async (over: number) => {
      const { text, format } = draft
      const about = note.trim() === '' ? {} : { note: note.trim() }
      const sent = { agent_id: agentId, yaml: text, format, if_match: `"${over}"`, ...about }
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

export interface Check {
  /** All errors of the definition and of the form; empty if the last check found none. */
  readonly problems: readonly Problem[]
  /** True if the current text has passed the check. */
  readonly isGood: boolean
  /** Reports the error of a form field whose text is not in the definition; `undefined` removes it. */
  reportField(path: string, message: string | undefined): void
}

const PAUSE_MS = 300

export function useCheck(text: string, format: DefinitionFormat): Check {
  const [yaml] = useDebouncedValue(text, PAUSE_MS)
  const { data, isPlaceholderData } = useQuery({
    queryKey: ['check', format, yaml],
    queryFn: ({ signal }) => listProblems(yaml, format, signal),
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false,
  })
  const [fields, setFields] = useState<Readonly<Record<string, string>>>({})
  const reportField = useCallback((path: string, message: string | undefined) => {
    setFields(({ [path]: _, ...others }) => (message === undefined ? others : { ...others, [path]: message }))
  }, [])
  const problems = useMemo(() => {
    const found = data ?? []
    const own = Object.entries(fields).map(([path, message]) => ({ path, message, line: null, column: null }))
    return [...found, ...own.filter(({ path }) => found.every((one) => one.path !== path))]
  }, [data, fields])
  const isCurrent = data !== undefined && !isPlaceholderData && yaml === text
  return { problems, isGood: isCurrent && problems.length === 0, reportField }
}
