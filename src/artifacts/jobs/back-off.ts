/** Says how long a job rests that came to nothing. */
import type { Random } from '../../lib/random.ts'

const FIRST_SECONDS = 1
const LONGEST_SECONDS = 600

/**
 * Whole seconds to the next try after so many in vain, 1 at the least: twice as long each time up to 10 minutes, and then something
 * between half of that and all of it, so that what failed together does not come back together.
 */
export function backOffSeconds(inVain: number, random: Random): number {
  const whole = Math.min(FIRST_SECONDS * 2 ** (inVain - 1), LONGEST_SECONDS)
  const share = (random(1)[0] ?? 0) / 255
  return Math.max(FIRST_SECONDS, Math.round(whole * (0.5 + share / 2)))
}
