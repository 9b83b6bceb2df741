/** Reads prompts into a model, in steps short enough that whoever leaves is noticed. */
import type { Token } from 'node-llama-cpp'
import type { Place } from './load.ts'

/** A step that took longer is halved; one that took a third of it is doubled. */
const LONGEST_STEP_MS = 250
const [FEWEST_TOKENS, MOST_TOKENS] = [8, 512]

/**
 * Reads all of a prompt but its last token, which the answer begins with. What the place has read before is kept as far as it is the
 * same. The library itself looks at a signal only after the whole prompt, which a processor may take minutes for.
 * @throws the signal's reason, within a step of its abort.
 */
export async function readPrompt(
  place: Place,
  prompt: readonly Token[],
  signal: AbortSignal,
  monotonic: () => number,
): Promise<void> {
  const { sequence } = place
  const end = prompt.length - 1
  await sequence.adaptStateToTokens(prompt.slice(0, end), false)
  while (sequence.nextTokenIndex < end) {
    signal.throwIfAborted()
    const from = sequence.nextTokenIndex
    const since = monotonic()
    await sequence.evaluateWithoutGeneratingNewTokens(
      prompt.slice(from, Math.min(from + place.stepTokens, end)),
    )
    const isWhole = from + place.stepTokens <= end
    place.stepTokens = nextStep(place.stepTokens, monotonic() - since, isWhole)
  }
  signal.throwIfAborted()
}

function nextStep(stepTokens: number, tookMs: number, isWhole: boolean): number {
  if (tookMs > LONGEST_STEP_MS) return Math.max(FEWEST_TOKENS, stepTokens >> 1)
  // The rest of a prompt says nothing of a whole step.
  return isWhole && tookMs < LONGEST_STEP_MS / 3 ? Math.min(MOST_TOKENS, stepTokens * 2) : stepTokens
}
