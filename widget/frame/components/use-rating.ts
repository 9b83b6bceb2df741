/** Stores the visitor's rating of an answer. */
import { type RefObject, useRef, useState } from 'react'
import type { Rating, Reply } from '../conversation.ts'
import { type Failure, toChatFailure } from '../failure.ts'
import { useFrame } from '../frame-context.ts'
import { useFlash } from './ActionButton.tsx'

export interface RatingState {
  /** The stored rating. */
  readonly given: Rating | undefined
  /** The value that the visitor has chosen, even if it could not be stored. */
  readonly chosen: Rating['value'] | undefined
  readonly isFormOpen: boolean
  /** Whether the rating was stored a moment ago. */
  readonly isThanking: boolean
  readonly failure: Failure | undefined
  /** The element that contains the buttons. */
  readonly buttons: RefObject<HTMLSpanElement | null>
  /** Rates the answer and opens the form, or opens and closes the form of a rating. */
  readonly choose: (value: Rating['value']) => void
  /** Stores the rating and closes the form; undefined deletes the rating. */
  readonly finish: (rating: Rating | undefined) => Promise<void>
  readonly close: () => void
}

/** Returns undefined if the visitor cannot rate the answer. */
export function useRating({ ratable, rating: given, status }: Reply): RatingState | undefined {
  const { session, agent } = useFrame()
  const [isFormOpen, setIsFormOpen] = useState(false)
  const [chosen, setChosen] = useState(given?.value)
  const [failure, setFailure] = useState<Failure>()
  const [isThanking, thank] = useFlash()
  const buttons = useRef<HTMLSpanElement>(null)
  if (ratable === undefined || status === 'streaming' || agent?.conversations?.rate !== true) return undefined
  const turnId = ratable

  async function store(rating: Rating | undefined): Promise<boolean> {
    setFailure(undefined)
    try {
      await session.stored.rate(turnId, rating)
      return true
    } catch (thrown) {
      setFailure(toChatFailure(thrown).failure)
      return false
    }
  }

  function close(): void {
    buttons.current?.querySelector<HTMLElement>('[aria-expanded=true]')?.focus()
    setIsFormOpen(false)
  }

  return {
    ...{ given, chosen: given?.value ?? chosen, isFormOpen, isThanking, failure, buttons, close },
    choose(value) {
      setChosen(value)
      setIsFormOpen(given?.value !== value || !isFormOpen)
      if (given?.value !== value) void store({ value })
    },
    async finish(rating) {
      if (!(await store(rating))) return
      close()
      thank()
    },
  }
}
