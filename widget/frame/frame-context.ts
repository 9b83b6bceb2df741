/** What every part of the window needs. */
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

/** @throws outside of the window. */
export function useFrame(): FrameContext {
  const frame = useContext(Frame)
  if (frame === undefined) throw new Error('a part of the window stands outside of it')
  return frame
}
