/** Asks the visitor to confirm an action in a modal dialog. */
import { useId, useRef } from 'react'
import type { Failure } from '../failure.ts'
import { FailureNote } from './FailureNote.tsx'
import { useModal } from './use-modal.ts'

interface Props {
  readonly title: string
  /** The consequence of the action. */
  readonly text?: string | undefined
  readonly yes: string
  readonly no: string
  /** Why the action has failed. */
  readonly failure?: Failure | undefined
  readonly onAnswer: (isYes: boolean) => void
}

export function Question({ title, text, yes, no, failure, onAnswer }: Props) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useModal(dialog)

  return (
    <dialog
      ref={dialog}
      className="question"
      aria-labelledby={`${id}-title`}
      aria-describedby={text && `${id}-text`}
      onCancel={(event) => {
        event.preventDefault()
        onAnswer(false)
      }}
    >
      <h2 id={`${id}-title`}>{title}</h2>
      {text !== undefined && <p id={`${id}-text`}>{text}</p>}
      {failure !== undefined && <FailureNote failure={failure} />}
      <div className="buttons">
        <button type="button" className="button" onClick={() => onAnswer(false)}>
          {no}
        </button>
        <button type="button" className="button primary" onClick={() => onAnswer(true)}>
          {yes}
        </button>
      </div>
    </dialog>
  )
}
