/** A question above the window: nothing else can be done before it is answered. */
import { useEffect, useId, useRef } from 'react'

interface Props {
  readonly title: string
  readonly text: string
  readonly yes: string
  readonly no: string
  readonly onAnswer: (isYes: boolean) => void
}

export function Question({ title, text, yes, no, onAnswer }: Props) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => dialog.current?.showModal(), [])

  function answer(isYes: boolean): void {
    // While it is open nothing outside of it can take the focus.
    dialog.current?.close()
    onAnswer(isYes)
  }

  return (
    <dialog
      ref={dialog}
      className="question"
      aria-labelledby={`${id}-title`}
      aria-describedby={`${id}-text`}
      onCancel={(event) => {
        event.preventDefault()
        answer(false)
      }}
    >
      <h2 id={`${id}-title`}>{title}</h2>
      <p id={`${id}-text`}>{text}</p>
      <div className="buttons">
        <button type="button" className="button" onClick={() => answer(false)}>
          {no}
        </button>
        <button type="button" className="button primary" onClick={() => answer(true)}>
          {yes}
        </button>
      </div>
    </dialog>
  )
}
