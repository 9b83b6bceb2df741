/** Shows the visitor's message, and lets the visitor edit or remove it. */
import { memo, useRef, useState } from 'react'
import type { UserMessage } from '../conversation.ts'
import { useFrame } from '../frame-context.ts'
import { Action } from './ActionButton.tsx'
import { SentAttachments } from './AttachmentViews.tsx'
import { FailureNote } from './FailureNote.tsx'
import { DeleteIcon, EditIcon } from './icons.tsx'
import { OnDemand } from './OnDemand.tsx'
import { Question } from './Question.tsx'
import { Time } from './Time.tsx'

interface Props {
  readonly entry: UserMessage
  /** Whether this is the visitor's most recent message. */
  readonly isLast: boolean
}

export const UserMessageView = memo(function UserMessageView({ entry, isLast }: Props) {
  const { session, language, isLocal } = useFrame()
  const { strings } = language
  const [mode, setMode] = useState<'read' | 'edit' | 'remove'>('read')
  const article = useRef<HTMLElement>(null)

  function leave(): void {
    setMode('read')
    // Waits for the next frame, in which the edit button is visible again.
    requestAnimationFrame(() => article.current?.querySelector<HTMLElement>('.action')?.focus())
  }

  return (
    <article className="entry user" ref={article}>
      <h2 className="unseen">{strings.youSaid}</h2>
      {mode === 'edit' ? (
        <OnDemand load={loadEditor} props={{ entry, isLast, onClose: leave }} onFailure={leave} />
      ) : (
        <>
          {entry.attachments !== undefined && <SentAttachments attachments={entry.attachments} />}
          {entry.text !== '' && (
            <div className="bubble" dir="auto">
              {entry.text}
            </div>
          )}
          {entry.delivery === 'delayed' && <p className="aside">{strings.people.delayed}</p>}
          {typeof entry.delivery === 'object' && (
            <FailureNote failure={entry.delivery} onRetry={session.retry} />
          )}
          <div className="actions">
            <Time atMs={entry.atMs} />
            {(isLocal || entry.isChangeable) && (
              <>
                <Action name={strings.edit} icon={<EditIcon />} act={() => setMode('edit')} />
                <Action name={strings.remove} icon={<DeleteIcon />} act={() => setMode('remove')} />
              </>
            )}
          </div>
        </>
      )}
      {mode === 'remove' && (
        <Question
          title={strings.removeQuestion}
          text={entry.isUnsent ? undefined : isLocal ? strings.removeLoss : strings.removeLossStored}
          yes={strings.removeYes}
          no={strings.cancel}
          onAnswer={(isYes) => {
            // The message disappears, so the focus moves to the messages.
            const scroller = article.current?.closest<HTMLElement>('.scroller')
            setMode('read')
            if (!isYes) return
            session.messages.remove(entry.id)
            requestAnimationFrame(() => scroller?.focus())
          }}
        />
      )}
    </article>
  )
})

async function loadEditor() {
  return (await import('./MessageEditor.tsx')).MessageEditor
}
