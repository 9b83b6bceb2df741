/** Provides the session, the language and the Markdown parser to all components. */
import { createContext, useContext } from 'react'
import type { MarkdownParser } from './markdown/parser.ts'
import type { Session } from './session.ts'
import type { Language } from './strings/strings.ts'

interface FrameContext {
  readonly session: Session
  readonly language: Language
  readonly parser: MarkdownParser
}

export const Frame = createContext<FrameContext | undefined>(undefined)

/** @throws Error outside of `Frame.Provider` */
export function useFrame(): FrameContext {
  const frame = useContext(Frame)
  if (frame === undefined) throw new Error('useFrame must be called inside Frame.Provider')
  return frame
}
