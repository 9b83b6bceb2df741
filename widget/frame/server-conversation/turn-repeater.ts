/** Repeats a turn that failed because other answers had reserved the rest of a budget. */
import type { VisitorTurn } from '../../../src/visitors/schema.ts'
import { MAX_REPEATS, REPEAT_AFTER_MS } from '../failure.ts'
import type { ShownConversation } from './shown-conversation.ts'
import { isQuestion } from './view.ts'

interface TurnRepeaterParts {
  readonly getShown: () => ShownConversation
  /** Requests another answer to the last message. */
  readonly regenerate: () => void
}

export class TurnRepeater {
  private readonly parts: TurnRepeaterParts
  /** Number of repeats since the visitor's last action. */
  private repeats = 0
  private timer: ReturnType<typeof setTimeout> | undefined

  constructor(parts: TurnRepeaterParts) {
    this.parts = parts
  }

  /** Returns whether the turn will be repeated. Repeats only turns without page tools, whose calls ran already. */
  repeat({ id, status, error_code }: VisitorTurn): boolean {
    const { view } = this.parts.getShown()
    const isReserved = status === 'failed' && error_code === 'budget_reserved'
    if (!isReserved || this.repeats === MAX_REPEATS) return false
    if (view.get().lines.findLast(isQuestion)?.turn_id !== id) return false
    this.repeats += 1
    view.apply({ type: 'repeating', turnId: id })
    this.timer = setTimeout(() => {
      this.timer = undefined
      this.parts.regenerate()
    }, REPEAT_AFTER_MS)
    return true
  }

  /** Whether a turn waits for its repeat, or its repeat is being sent. */
  isRepeating({ id }: VisitorTurn): boolean {
    return this.parts.getShown().view.get().repeating === id
  }

  /** Shows the failure of a turn that waits for its repeat. Returns false if no turn waits. */
  stop(): boolean {
    if (this.timer === undefined) return false
    this.clear()
    this.parts.getShown().view.apply({ type: 'repeating', turnId: undefined })
    return true
  }

  /** Must be called when the visitor starts a turn or leaves the conversation. */
  reset(): void {
    this.clear()
    this.repeats = 0
  }

  private clear(): void {
    clearTimeout(this.timer)
    this.timer = undefined
  }
}
