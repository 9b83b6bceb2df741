/** Shows the messages, or an empty chat's welcome text. */

import { Fragment } from 'react'
import type { AppState } from '../app-state.ts'
import type { Entry } from '../conversation.ts'
import { useFrame } from '../frame-context.ts'
import { Markdown } from '../markdown/Markdown.tsx'
import { DaySeparator } from './DaySeparator.tsx'
import { Dots } from './Dots.tsx'
import { FailureNote } from './FailureNote.tsx'
import { DownIcon } from './icons.tsx'
import { NoteView, PersonMessageView } from './PersonViews.tsx'
import { ReplyView } from './ReplyView.tsx'
import { UserMessageView } from './UserMessageView.tsx'
import { usePinnedQuestion } from './use-pinned-question.ts'

export function Conversation({ state }: { state: AppState }) {
  const { session, language } = useFrame()
  const { strings } = language
  const { conversation, home, opening } = state
  const { entries } = conversation
  const isEmpty = entries.length === 0 && opening === undefined
  const isUsable = state.blocked === undefined
  const newestQuestion = entries.findLast(({ kind }) => kind === 'user')?.id
  const { scroller, content, spacer, isEndHidden, followEnd } = usePinnedQuestion(
    newestQuestion,
    // Pins only questions to the model, because only its answers grow while they are shown.
    state.answering.mode === 'model',
  )
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
                canRegenerate={home !== 'server' || state.answering.mode === 'model'}
              />
            </Fragment>
          ))}
          {isUsable && <FollowUps state={state} />}
          {opening === 'loading' && <Dots label={strings.loading} />}
          {typeof opening === 'object' && (
            <FailureNote failure={opening} onRetry={() => session.stored.reopen()} />
          )}
          {state.blocked !== undefined && <FailureNote failure={state.blocked} />}
        </div>
        <div ref={spacer} className="spacer" />
      </section>
      {isEndHidden && (
        <button type="button" className="to-end" onClick={followEnd}>
          <DownIcon />
          {strings.jumpToLatest}
        </button>
      )}
    </main>
  )
}

interface EntryProps {
  readonly entry: Entry
  readonly isNewest: boolean
  /** Whether this is the visitor's most recent message. */
  readonly isLastMessage: boolean
  readonly canRegenerate: boolean
}

function EntryView({ entry, isNewest, isLastMessage, canRegenerate }: EntryProps) {
  if (entry.kind === 'user') return <UserMessageView entry={entry} isLast={isLastMessage} />
  if (entry.kind === 'person') return <PersonMessageView entry={entry} />
  if (entry.kind === 'note') return <NoteView entry={entry} />
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

/** Shows suggested first messages. */
function Starters({ state: { agent } }: { state: AppState }) {
  return <Suggestions texts={[...new Set(agent?.starters)]} />
}

/** Shows questions that the visitor could ask after the newest reply. */
function FollowUps({ state: { followUps, conversation } }: { state: AppState }) {
  const last = conversation.entries.at(-1)
  if (followUps === undefined || last?.id !== followUps.replyId) return null
  return <Suggestions texts={followUps.questions} />
}

/** Shows buttons, each of which sends its text as a message. */
function Suggestions({ texts }: { texts: readonly string[] }) {
  const { session, language } = useFrame()
  if (texts.length === 0) return null
  return (
    <ul className="starters" aria-label={language.strings.startersLabel}>
      {texts.map((text) => (
        <li key={text}>
          <button
            type="button"
            className="starter"
            dir="auto"
            onClick={({ currentTarget }) => {
              // The buttons disappear, so the focus moves to the messages.
              currentTarget.closest<HTMLElement>('.scroller')?.focus()
              session.send(text)
            }}
          >
            {text}
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
