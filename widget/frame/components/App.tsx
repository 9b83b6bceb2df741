/** Shows the chat window: header, conversation and input. */
import { useEffect, useLayoutEffect, useMemo, useSyncExternalStore } from 'react'
import { Frame } from '../frame-context.ts'
import type { MarkdownParser } from '../markdown/parser.ts'
import type { Session } from '../session.ts'
import { applyLanguage, applyTheme } from '../theme.ts'
import { Announcer } from './Announcer.tsx'
import { AnsweringBar } from './AnsweringBar.tsx'
import { Composer } from './Composer.tsx'
import { Conversation } from './Conversation.tsx'
import { Header } from './Header.tsx'

export function App({ session, parser }: { session: Session; parser: MarkdownParser }) {
  const state = useSyncExternalStore(session.store.subscribe, session.store.get)
  const { options, agent, language, conversation } = state
  const isLocal = state.home === 'browser'
  const frame = useMemo(
    () => ({ session, parser, language, options, agent, isLocal }),
    [session, parser, language, options, agent, isLocal],
  )
  const title = options?.title || agent?.title || agent?.name || language.strings.defaultTitle

  useEffect(() => applyLanguage(document.documentElement, language, title), [language, title])
  const theme = useMemo(() => options && session.themeOf(options), [session, options])
  useLayoutEffect(() => theme && applyTheme(document.documentElement, theme), [theme])
  useEffect(() => closeOnEscape(session), [session])

  if (theme === undefined) return null
  return (
    <Frame.Provider value={frame}>
      <div className="window">
        <Header title={title} logo={theme.logo} state={state} />
        <AnsweringBar state={state} />
        <Conversation state={state} />
        <Composer state={state} />
        <Announcer conversation={conversation} isOpen={state.isOpen} />
      </div>
    </Frame.Provider>
  )
}

/** Closes the window on Escape, unless a menu or dialog handles the key. */
function closeOnEscape(session: Session): () => void {
  function onKeyDown(event: KeyboardEvent): void {
    if (event.key !== 'Escape' || event.defaultPrevented || event.isComposing) return
    if (document.querySelector('dialog[open]') !== null) return
    if (session.store.get().options?.isInline === false) session.close()
  }
  document.addEventListener('keydown', onKeyDown)
  return () => document.removeEventListener('keydown', onKeyDown)
}
