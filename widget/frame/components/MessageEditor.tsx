/** Edits the visitor's message and sends it again. */
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react'
import type { UserMessage } from '../conversation.ts'
import { useFrame } from '../frame-context.ts'

interface Props {
  readonly entry: UserMessage
  /** Whether this is the visitor's most recent message. */
  readonly isLast: boolean
  readonly onClose: () => void
}

export function MessageEditor({ entry, isLast, onClose }: Props) {
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
