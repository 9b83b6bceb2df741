/** Provides the session, the language, the Markdown parser and the settings to all components. */
import { createContext, useContext } from 'react'
import type { FrameOptions } from '../options.ts'
import type { AgentSelf } from './chat/transport.ts'
import type { MarkdownParser } from './markdown/parser.ts'
import type { Session } from './session.ts'
import type { Language } from './strings/strings.ts'

interface FrameContext {
  readonly session: Session
  readonly language: Language
  readonly parser: MarkdownParser
  readonly options: FrameOptions | undefined
  /** Undefined until the server has responded, or if the endpoint has no agent. */
  readonly agent: AgentSelf | undefined
  /** Whether only the browser stores the conversation; false while this is unknown. */
  readonly isLocal: boolean
}

export const Frame = createContext<FrameContext | undefined>(undefined)

/** @throws Error outside of `Frame.Provider` */
export function useFrame(): FrameContext {
  const frame = useContext(Frame)
  if (frame === undefined) throw new Error('useFrame must be called inside Frame.Provider')
  return frame
}
