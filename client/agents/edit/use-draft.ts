/** The text somebody works on, and how the form reads and changes it. */
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import type { DefinitionFormat } from '../../types.ts'
import { changeDefinition, readDefinition } from '../definition-text.ts'
import type { Path } from '../paths.ts'

/** The saved text it began with; version 0 was never saved. */
export interface SavedText {
  readonly text: string
  readonly format: DefinitionFormat
  readonly version: number
}

export interface Draft {
  readonly text: string
  readonly format: DefinitionFormat
  readonly saved: SavedText
  readonly isDirty: boolean
  /** What the text says; what it last said while it cannot be read. */
  readonly value: Readonly<Record<string, unknown>>
  readonly isReadable: boolean
  setText(text: string): void
  /** Changes one value; `undefined` takes it out. */
  change(path: Path, value: unknown): void
  /** From now on this is what is saved; with `text` it also becomes the text. */
  rebase(saved: SavedText, text?: string): void
}

/** A newer saved text takes the place of an older one that nobody has changed. */
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
