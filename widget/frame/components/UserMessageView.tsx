/** Shows the visitor's message, and lets the visitor edit or remove it. */
import { type KeyboardEvent, memo, useEffect, useId, useRef, useState } from 'react'
import type { UserMessage } from '../conversation.ts'
import { useFrame } from '../frame-context.ts'
import { Action } from './ActionButton.tsx'
import { SentAttachments } from './AttachmentViews.tsx'
import { FailureNote } from './FailureNote.tsx'
import { DeleteIcon, EditIcon } from './icons.tsx'
import { Question } from './Question.tsx'
import { Time } from './Time.tsx'

interface Props {
  readonly entry: UserMessage
  /** Whether the visitor has sent no later message. */
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
        <MessageEditor entry={entry} isLast={isLast} onClose={leave} />
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
          text={isLocal ? strings.removeLoss : strings.removeLossStored}
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

function MessageEditor({ entry, isLast, onClose }: Props & { readonly onClose: () => void }) {
  const { session, language } = useFrame()
  const { strings } = language
  const [text, setText] = useState(entry.text)
  const area = useRef<HTMLTextAreaElement>(null)
  const id = useId()

  useEffect(() => {
    const { current } = area
    current?.focus()
    current?.setSelectionRange(current.value.length, current.value.length)
  }, [])

  function send(): void {
    if (text.trim() === '') return
    const scroller = area.current?.closest<HTMLElement>('.scroller')
    if (session.messages.edit(entry.id, text.trim())) scroller?.focus()
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.nativeEvent.isComposing || event.keyCode === 229) return
    if (event.key === 'Escape') onClose()
    else if (event.key === 'Enter' && !event.shiftKey) send()
    else return
    event.preventDefault()
  }

  return (
    <form
      className="editor"
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      <textarea
        ref={area}
        dir="auto"
        rows={2}
        maxLength={32_000}
        value={text}
        aria-label={strings.editLabel}
        aria-describedby={isLast ? undefined : id}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      {!isLast && (
        <p id={id} className="aside">
          {strings.editLoss}
        </p>
      )}
      <div className="buttons">
        <button type="button" className="button" onClick={onClose}>
          {strings.cancel}
        </button>
        <button type="submit" className="button primary" disabled={text.trim() === ''}>
          {strings.send}
        </button>
      </div>
    </form>
  )
}
