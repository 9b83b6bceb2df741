/** Stores unsaved drafts in the browser and offers them after a crash or a reload. */
import { useDebouncedCallback } from '@mantine/hooks'
import { useEffect, useRef, useState } from 'react'
import { hasSessionEnded } from '../../session.ts'
import { useMe } from '../../shell/use-me.ts'
import { isRecord } from '../object-paths.ts'
import type { Draft } from './use-editor.ts'

interface StoredDraft {
  readonly text: string
  /** The saved version that the draft is based on. */
  readonly version: number
  /** Unix seconds. */
  readonly savedAt: number
}

export interface DraftOffer {
  /** Time of the last change, in Unix seconds. */
  readonly savedAt: number
  restore(): void
  discard(): void
}

const PAUSE_MS = 500

/** Matches API keys of Parley and of most model providers; a text that contains one is never stored. */
const apiKey = /\b(?:svc_|agnt_key-|sk-)[0-9A-Za-z_-]{20,}/

/**
 * Stores the draft while it has changes. `subject` is the agent's id or an id for the new agent; if it is
 * undefined, nothing is stored. Returns the draft of an earlier page if it differs from the saved version.
 */
export function useStoredDraft(subject: string | undefined, draft: Draft): DraftOffer | undefined {
  const { parent_key: parentKey } = useMe()
  const place = subject === undefined ? undefined : `parley-draft:${parentKey}:${subject}`
  const [offered, setOffered] = useState(() => readStored(place, draft.saved.text))
  const { text, isDirty } = draft
  const { version } = draft.saved
  const store = useDebouncedCallback(
    (now: Omit<StoredDraft, 'savedAt'>) => {
      if (place !== undefined) writeStored(place, now)
    },
    { delay: PAUSE_MS },
  )
  const wasDirty = useRef(false)
  useEffect(() => {
    if (place === undefined) return
    if (isDirty) store({ text, version })
    else if (wasDirty.current) {
      store.cancel()
      remove(place)
    }
    wasDirty.current = isDirty
  }, [place, isDirty, text, version, store])
  useEffect(
    () => () => {
      // Removes the draft, because the user has confirmed the loss of the changes. Keeps it if the session
      // has ended.
      if (place !== undefined && wasDirty.current && !hasSessionEnded()) remove(place)
    },
    [place],
  )
  if (offered === undefined || place === undefined) return undefined
  return {
    savedAt: offered.savedAt,
    restore: () => {
      // Keeps the version that the draft is based on, so that saving reports a newer version as a conflict.
      draft.rebase({ ...draft.saved, version: offered.version }, offered.text)
      setOffered(undefined)
    },
    discard: () => {
      if (!isDirty) remove(place)
      setOffered(undefined)
    },
  }
}

function readStored(place: string | undefined, savedText: string): StoredDraft | undefined {
  if (place === undefined) return undefined
  try {
    const value: unknown = JSON.parse(localStorage.getItem(place) ?? 'null')
    if (!isRecord(value)) return undefined
    const { text, version, savedAt } = value
    if (typeof text !== 'string' || typeof version !== 'number' || typeof savedAt !== 'number')
      return undefined
    if (text !== savedText) return { text, version, savedAt }
    localStorage.removeItem(place)
  } catch {
    // The browser forbids storage, or another program has changed the entry.
  }
  return undefined
}

function writeStored(place: string, draft: Omit<StoredDraft, 'savedAt'>): void {
  try {
    if (apiKey.test(draft.text)) localStorage.removeItem(place)
    else localStorage.setItem(place, JSON.stringify({ ...draft, savedAt: Math.floor(Date.now() / 1_000) }))
  } catch {
    // The storage is full or forbidden; the editor works without it.
  }
}

function remove(place: string): void {
  try {
    localStorage.removeItem(place)
  } catch {
    // The browser forbids storage, so it contains no draft.
  }
}
