/** What has been said so far, or what stands there before anything was. */
import type { AppState } from '../app-state.ts'
import type { Entry } from '../conversation/state.ts'
import { useFrame } from '../frame-context.ts'
import { DownIcon } from '../lib/icons.tsx'
import { useStickToBottom } from '../lib/use-stick-to-bottom.ts'
import { FailureNote } from './FailureNote.tsx'
import { ReplyView } from './ReplyView.tsx'
import { UserBubble } from './UserBubble.tsx'
import { Greeting, Starters, Welcome } from './Welcome.tsx'

export function Conversation({ state }: { state: AppState }) {
  const { strings } = useFrame().language
  const { entries } = state.conversation
  const isUsable = state.blocked === undefined
  const newestQuestion = entries.findLast(({ kind }) => kind === 'user')?.id
  const { scroller, content, hasNew, scrollToEnd } = useStickToBottom(newestQuestion)
  return (
    <main className="conversation">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled with the keyboard */}
      <section className="scroller" ref={scroller} tabIndex={0} aria-label={strings.conversation}>
        <div ref={content} className="messages">
          {entries.length === 0 && <Welcome state={state} />}
          {isUsable && <Greeting state={state} />}
          {isUsable && entries.length === 0 && <Starters state={state} />}
          {entries.map((entry, index) => (
            <EntryView key={entry.id} entry={entry} isNewest={index === entries.length - 1} />
          ))}
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

function EntryView({ entry, isNewest }: { entry: Entry; isNewest: boolean }) {
  if (entry.kind === 'user') return <UserBubble entry={entry} />
  return <ReplyView reply={entry} isNewest={isNewest} />
}
