/** Shows the messages, or an empty chat's welcome text. */

import { Fragment, type RefObject, useCallback, useEffect, useRef, useState } from 'react'
import type { AppState } from '../app-state.ts'
import type { Entry } from '../conversation.ts'
import { useFrame } from '../frame-context.ts'
import { Markdown } from '../markdown/Markdown.tsx'
import { DaySeparator } from './DaySeparator.tsx'
import { Dots } from './Dots.tsx'
import { FailureNote } from './FailureNote.tsx'
import { DownIcon } from './icons.tsx'
import { ReplyView } from './ReplyView.tsx'
import { UserMessageView } from './UserMessageView.tsx'

export function Conversation({ state }: { state: AppState }) {
  const { session, language } = useFrame()
  const { strings } = language
  const { conversation, home, opening } = state
  const { entries } = conversation
  const isEmpty = entries.length === 0 && opening === undefined
  const isUsable = state.blocked === undefined
  const newestQuestion = entries.findLast(({ kind }) => kind === 'user')?.id
  const { scroller, content, hasNew, scrollToEnd } = useStickToBottom(newestQuestion)
  return (
    <main className="conversation">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard */}
      <section className="scroller" ref={scroller} tabIndex={0} aria-label={strings.conversation}>
        <div ref={content} className="messages">
          {isEmpty && <Welcome state={state} />}
          {isUsable && opening === undefined && <Greeting state={state} />}
          {isUsable && isEmpty && <Starters state={state} />}
          {entries.map((entry, index) => (
            <Fragment key={entry.id}>
              <DaySeparator atMs={entry.atMs} beforeMs={entries[index - 1]?.atMs} />
              <EntryView
                entry={entry}
                isNewest={index === entries.length - 1}
                isLastMessage={entry.id === newestQuestion}
                canRegenerate={home !== 'server'}
              />
            </Fragment>
          ))}
          {opening === 'loading' && <Dots label={strings.loading} />}
          {typeof opening === 'object' && (
            <FailureNote failure={opening} onRetry={() => session.stored.reopen()} />
          )}
          {state.blocked !== undefined && <FailureNote failure={state.blocked} />}
        </div>
      </section>
      {hasNew && (
        <button type="button" className="to-end" onClick={scrollToEnd}>
          <DownIcon />
          {strings.scrollDown}
        </button>
      )}
    </main>
  )
}

interface EntryProps {
  readonly entry: Entry
  readonly isNewest: boolean
  /** Whether the visitor has sent no later message. */
  readonly isLastMessage: boolean
  readonly canRegenerate: boolean
}

function EntryView({ entry, isNewest, isLastMessage, canRegenerate }: EntryProps) {
  if (entry.kind === 'user') return <UserMessageView entry={entry} isLast={isLastMessage} />
  return <ReplyView reply={entry} isNewest={isNewest} canRegenerate={canRegenerate} />
}

function Welcome({ state: { options } }: { state: AppState }) {
  if (!options?.welcomeMessage) return null
  return (
    <p className="welcome" dir="auto">
      {options.welcomeMessage}
    </p>
  )
}

/** Shows suggested first messages, which are sent on click. */
function Starters({ state: { agent } }: { state: AppState }) {
  const { session, language } = useFrame()
  const starters = [...new Set(agent?.starters)]
  if (starters.length === 0) return null
  return (
    <ul className="starters" aria-label={language.strings.startersLabel}>
      {starters.map((starter) => (
        <li key={starter}>
          <button type="button" className="starter" dir="auto" onClick={() => session.send(starter)}>
            {starter}
          </button>
        </li>
      ))}
    </ul>
  )
}

/** Shows the greeting like a reply, but does not send it to the model. */
function Greeting({ state: { options, agent } }: { state: AppState }) {
  const { language, parser } = useFrame()
  const greeting = options?.greeting || agent?.greeting
  if (!greeting) return null
  return (
    <article className="entry reply">
      <h2 className="unseen">{language.strings.assistantSaid}</h2>
      <div className="prose">
        <Markdown text={greeting} parser={parser} />
      </div>
    </article>
  )
}

/** Distance from the end, in pixels, up to which the view counts as scrolled to the end. */
const NEAR_PX = 48

interface Stick {
  readonly scroller: RefObject<HTMLElement | null>
  readonly content: RefObject<HTMLDivElement | null>
  /** True if new content has arrived below the visible part. */
  readonly hasNew: boolean
  readonly scrollToEnd: () => void
}

/**
 * Keeps the view at the end while text grows. A new user message changes `stickKey`, which scrolls to the end
 * again.
 */
function useStickToBottom(stickKey: unknown): Stick {
  const scroller = useRef<HTMLElement>(null)
  const content = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  const [hasNew, setHasNew] = useState(false)

  const scrollToEnd = useCallback(() => {
    isAtEnd.current = true
    setHasNew(false)
    const { current } = scroller
    if (current !== null) current.scrollTop = current.scrollHeight
  }, [])

  useEffect(() => {
    const box = scroller.current as HTMLElement
    const inner = content.current as HTMLDivElement
    let height = inner.offsetHeight
    let top = box.scrollTop
    function onScroll(): void {
      const isNear = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PX
      // Stops following only if the user scrolls up; growing text also increases the distance from the end.
      if (isNear) isAtEnd.current = true
      else if (box.scrollTop < top) isAtEnd.current = false
      top = box.scrollTop
      if (isAtEnd.current) setHasNew(false)
    }
    const observer = new ResizeObserver(() => {
      const hasGrown = inner.offsetHeight > height
      height = inner.offsetHeight
      if (isAtEnd.current) box.scrollTop = box.scrollHeight
      else if (hasGrown) setHasNew(true)
    })
    box.addEventListener('scroll', onScroll, { passive: true })
    observer.observe(inner)
    observer.observe(box)
    return () => {
      observer.disconnect()
      box.removeEventListener('scroll', onScroll)
    }
  }, [])

  // biome-ignore lint/correctness/useExhaustiveDependencies: the effect must run when the key changes
  useEffect(scrollToEnd, [stickKey])
  return { scroller, content, hasNew, scrollToEnd }
}
