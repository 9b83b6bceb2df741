/** How content is refused: one sentence for whoever uploaded it, and whether it may be handed out all the same. */
import { ServiceError } from '../errors.ts'

/**
 * `dangerous`: a bomb, or names that leave their folder; nobody may have it, so it is removed. `unconvertible`: another try may
 * do better, and in the end it is served as it was uploaded, as an attachment. Decision: 9.
 */
export type Verdict = 'dangerous' | 'unconvertible'

/** A refusal; its message may be shown to anybody, its cause is for the log. */
export class ConversionRefusal extends Error {
  override readonly name = 'ConversionRefusal'
  readonly verdict: Verdict

  constructor(verdict: Verdict, reason: string, cause?: unknown) {
    super(reason, cause === undefined ? undefined : { cause })
    this.verdict = verdict
  }
}

/** Whether a program failed because the disk is full, by what it printed. */
export function isRoomMissing(printed: string): boolean {
  return /No space left on device|ENOSPC|Disk quota exceeded|EDQUOT/.test(printed)
}

/** The error of a machine without room for what is made; the content is not at fault. */
export function noRoom(cause: unknown): ServiceError {
  return new ServiceError('storage_full', 'There is no room to convert files here at the moment.', { cause })
}

/** The refusal of what must not be handed out. */
export function dangerous(reason: string): ConversionRefusal {
  return new ConversionRefusal('dangerous', reason)
}

/** The refusal of what cannot be made fit for the web. */
export function unconvertible(reason: string, cause?: unknown): ConversionRefusal {
  return new ConversionRefusal('unconvertible', reason, cause)
}
