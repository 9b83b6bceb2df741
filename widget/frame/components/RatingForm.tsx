/** Asks for the reason of a rating and for a comment; loaded when the visitor rates an answer. */
import { type FormEvent, type KeyboardEvent, useEffect, useId, useRef, useState } from 'react'
import { type RatingReason, ratingReasons } from '../conversation.ts'
import { useFrame } from '../frame-context.ts'
import { FailureNote } from './FailureNote.tsx'
import type { RatingState } from './use-rating.ts'

/** Maximum length of a comment, in UTF-16 code units. */
const MAX_COMMENT = 1000

export function RatingForm({ rating }: { rating: RatingState }) {
  const { strings } = useFrame().language
  const { rating: words } = strings
  const { given, chosen: value = 'up', failure, finish, close } = rating
  const [reason, setReason] = useState(given?.reason ?? undefined)
  const [comment, setComment] = useState(given?.comment ?? '')
  const form = useRef<HTMLFormElement>(null)
  const id = useId()

  useEffect(() => form.current?.scrollIntoView({ block: 'nearest' }), [])

  function submit(event: FormEvent): void {
    event.preventDefault()
    void finish({ value, reason: (value === 'down' && reason) || null, comment: comment.trim() || null })
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.key !== 'Escape') return
    event.preventDefault()
    close()
  }

  return (
    <form ref={form} className="rating" aria-label={words.form} onSubmit={submit} onKeyDown={onKeyDown}>
      {value === 'down' && <Reasons chosen={reason} onChoose={setReason} />}
      <label htmlFor={id}>{words.comment}</label>
      <textarea
        id={id}
        dir="auto"
        rows={2}
        maxLength={MAX_COMMENT}
        value={comment}
        onInput={(event) => setComment(event.currentTarget.value)}
      />
      {failure !== undefined && <FailureNote failure={failure} />}
      <div className="buttons">
        <button type="button" className="button quiet" onClick={() => void finish(undefined)}>
          {words.remove}
        </button>
        <button type="button" className="button" onClick={close}>
          {words.skip}
        </button>
        <button type="submit" className="button primary">
          {strings.send}
        </button>
      </div>
    </form>
  )
}

interface ReasonsProps {
  readonly chosen: RatingReason | undefined
  readonly onChoose: (reason: RatingReason) => void
}

function Reasons({ chosen, onChoose }: ReasonsProps) {
  const { rating: words } = useFrame().language.strings
  const name = useId()
  return (
    <fieldset>
      <legend>{words.question}</legend>
      {ratingReasons.map((reason) => (
        <label key={reason} className="chip">
          <input type="radio" name={name} checked={reason === chosen} onChange={() => onChoose(reason)} />
          {words.reasons[reason]}
        </label>
      ))}
    </fieldset>
  )
}
