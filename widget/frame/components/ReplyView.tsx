/** Shows a reply: its text, tool calls, failure and actions. */
import { memo } from 'react'
import { hasCallback } from '../../options.ts'
import { type Reply, textOf } from '../conversation.ts'
import { useFrame } from '../frame-context.ts'
import { Markdown } from '../markdown/Markdown.tsx'
import { findShareTarget } from '../sharing.ts'
import { canReadAloud } from '../speech/reading.ts'
import { Action, CopyButton, useFlash } from './ActionButton.tsx'
import { AskPersonButton } from './AskPersonButton.tsx'
import { Dots } from './Dots.tsx'
import { FailureNote } from './FailureNote.tsx'
import { DoneIcon, InsertIcon, RetryIcon, ShareIcon } from './icons.tsx'
import { OnDemand } from './OnDemand.tsx'
import { RatingButtons, RatingDetails } from './RatingViews.tsx'
import { ReadAloudButton } from './ReadAloudButton.tsx'
import { Time } from './Time.tsx'
import { ToolCallView } from './ToolCallView.tsx'
import { useRating } from './use-rating.ts'

interface ReplyProps {
  readonly reply: Reply
  readonly isNewest: boolean
  /** Whether the reply can be replaced with another one. */
  readonly canRegenerate: boolean
}

export const ReplyView = memo(function ReplyView({ reply, isNewest, canRegenerate }: ReplyProps) {
  const { session, language } = useFrame()
  const { strings } = language
  const { rounds, status, failure, incomplete, continuable, isTakenOver } = reply
  const hasText = textOf(reply) !== ''
  return (
    <article className="entry reply" aria-busy={status === 'streaming'}>
      <h2 className="unseen">{strings.assistantSaid}</h2>
      {rounds.map((round, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: rounds are only ever added at the end
        <RoundView key={index} round={round} />
      ))}
      {isWaiting(reply) && <Dots label={strings.thinking} />}
      {status === 'stopped' && !isTakenOver && <p className="aside">{strings.stopped}</p>}
      {incomplete !== undefined && <p className="aside">{strings.incomplete[incomplete]}</p>}
      {continuable !== undefined && isNewest && <ContinueButton turnId={continuable} />}
      {failure !== undefined && (
        <FailureNote failure={failure} onRetry={isNewest ? session.retry : undefined}>
          {isNewest && <AskPersonButton />}
        </FailureNote>
      )}
      {status !== 'streaming' && (hasText || (isNewest && canRegenerate)) && (
        <ReplyActions reply={reply} canRegenerate={canRegenerate && isNewest && failure === undefined} />
      )}
    </article>
  )
})

const RoundView = memo(function RoundView({ round }: { round: Reply['rounds'][number] }) {
  const { parser } = useFrame()
  return (
    <>
      {round.text !== '' && (
        <div className="prose">
          <Markdown text={round.text} parser={parser} />
        </div>
      )}
      {round.calls.map((call) => (
        <ToolCallView key={call.id} call={call} />
      ))}
    </>
  )
})

/** Returns whether the reply has no visible content yet. */
function isWaiting({ status, rounds }: Reply): boolean {
  const last = rounds.at(-1)
  return status === 'streaming' && last?.text === '' && last.calls.length === 0
}

function ContinueButton({ turnId }: { turnId: string }) {
  const { session, language } = useFrame()
  return (
    <button
      type="button"
      className="button continue"
      onClick={({ currentTarget }) => {
        // The button disappears, so the focus moves to the messages.
        currentTarget.closest<HTMLElement>('.scroller')?.focus()
        session.stored.continueAnswer(turnId)
      }}
    >
      {language.strings.continueAnswer}
    </button>
  )
}

function ReplyActions({ reply, canRegenerate }: { reply: Reply; canRegenerate: boolean }) {
  const { session, language, options, agent } = useFrame()
  const { strings } = language
  const text = textOf(reply)
  const rating = useRating(reply)
  return (
    <>
      <div className="actions">
        {reply.versions !== undefined && <OnDemand load={loadPager} props={{ reply }} onFailure={() => {}} />}
        {text !== '' && (
          <>
            <CopyButton text={text} name={strings.copyMessage} />
            {options !== undefined && hasCallback(options, 'onInsert') && (
              <Action name={strings.insert} icon={<InsertIcon />} act={() => session.insert(text)} />
            )}
            {findShareTarget(options) !== 'clipboard' && <ShareButton text={text} />}
            {agent?.readAloud === true && canReadAloud() && <ReadAloudButton text={text} />}
            {rating !== undefined && <RatingButtons rating={rating} />}
          </>
        )}
        {canRegenerate && <Action name={strings.regenerate} icon={<RetryIcon />} act={session.retry} />}
        <Time atMs={reply.atMs} />
      </div>
      {rating?.isFormOpen && <RatingDetails rating={rating} />}
    </>
  )
}

async function loadPager() {
  return (await import('./VersionPager.tsx')).VersionPager
}

function ShareButton({ text }: { text: string }) {
  const { session, language } = useFrame()
  const { strings } = language
  const [isShared, flashShared] = useFlash()
  const [isCopied, flashCopied] = useFlash()
  const shareName = isCopied ? strings.copied : strings.share
  return (
    <Action
      name={isShared ? strings.shared : shareName}
      icon={isShared || isCopied ? <DoneIcon /> : <ShareIcon />}
      act={async () => {
        const outcome = await session.shareMessage(text)
        if (outcome === 'shared') flashShared()
        else if (outcome === 'copied') flashCopied()
      }}
    />
  )
}
