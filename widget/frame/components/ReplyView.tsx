/** Shows a reply: its text, tool calls, failure and actions. */
import { memo } from 'react'
import { type Reply, textOf } from '../conversation.ts'
import { useFrame } from '../frame-context.ts'
import { Markdown } from '../markdown/Markdown.tsx'
import { CopyButton, useFlash } from './ActionButton.tsx'
import { FailureNote } from './FailureNote.tsx'
import { DoneIcon, InsertIcon, RetryIcon, ShareIcon } from './icons.tsx'
import { ToolCallView } from './ToolCallView.tsx'

export const ReplyView = memo(function ReplyView({ reply, isNewest }: { reply: Reply; isNewest: boolean }) {
  const { strings } = useFrame().language
  const { rounds, status, failure } = reply
  const hasText = textOf(reply) !== ''
  return (
    <article className="entry reply" aria-busy={status === 'streaming'}>
      <h2 className="unseen">{strings.assistantSaid}</h2>
      {rounds.map((round, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: rounds are only ever added at the end
        <RoundView key={index} round={round} />
      ))}
      {isWaiting(reply) && <Dots label={strings.thinking} />}
      {status === 'stopped' && <p className="aside">{strings.stopped}</p>}
      {failure !== undefined && <FailureNote failure={failure} canRetry={isNewest} />}
      {status !== 'streaming' && (hasText || isNewest) && (
        <ReplyActions text={textOf(reply)} canRegenerate={isNewest && failure === undefined} />
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

function Dots({ label }: { label: string }) {
  return (
    <p className="dots" role="img" aria-label={label}>
      <span />
      <span />
      <span />
    </p>
  )
}

function ReplyActions({ text, canRegenerate }: { text: string; canRegenerate: boolean }) {
  const { session, language } = useFrame()
  const { strings } = language
  const [isShared, flashShared] = useFlash()
  const [isCopied, flashCopied] = useFlash()
  const shareName = isCopied ? strings.copied : strings.share
  return (
    <div className="actions">
      {text !== '' && (
        <>
          <CopyButton text={text} name={strings.copyMessage} />
          <Action name={strings.insert} icon={<InsertIcon />} act={() => session.insert(text)} />
          <Action
            name={isShared ? strings.shared : shareName}
            icon={isShared || isCopied ? <DoneIcon /> : <ShareIcon />}
            act={async () => {
              const outcome = await session.shareMessage(text)
              if (outcome === 'shared') flashShared()
              else if (outcome === 'copied') flashCopied()
            }}
          />
        </>
      )}
      {canRegenerate && <Action name={strings.regenerate} icon={<RetryIcon />} act={session.retry} />}
    </div>
  )
}

interface ActionProps {
  readonly name: string
  readonly icon: React.ReactNode
  readonly act: () => void
}

function Action({ name, icon, act }: ActionProps) {
  return (
    <button type="button" className="action" title={name} aria-label={name} onClick={act}>
      {icon}
    </button>
  )
}
