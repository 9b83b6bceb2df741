/** What every answer carries beside what it says: its names, and the tokens it took. */

import { newId } from '../keys/format.ts'
import { unixSeconds } from '../lib/clock.ts'
import type { Dependencies } from './dependencies.ts'
import type { Usage } from './schema.ts'

/** How an answer names itself. Contract: Chat completion (response). */
export interface AnswerNames {
  readonly id: string
  /** Unix seconds. */
  readonly created: number
  readonly model: string
}

/** Names for an answer whose backend gives it none. */
export function newNames(
  { clock, random }: Pick<Dependencies, 'clock' | 'random'>,
  model: string,
): AnswerNames {
  return { id: newId('chatcmpl-', 24, random), created: unixSeconds(clock), model }
}

/** Whether an answer, or a chunk of one, has all its names. */
export function hasNames(
  answer: Readonly<Record<string, unknown>>,
): answer is Readonly<Record<string, unknown>> & AnswerNames {
  const { id, created, model } = answer
  return typeof id === 'string' && typeof created === 'number' && typeof model === 'string'
}

/** What is answered for a backend that counts nothing: the contract has numbers there. Contract: Chat completion (response). */
export const noUsage: Usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }

/** A backend's count, whatever it left out. */
export function toUsage(sent: Readonly<Record<string, unknown>>): Usage {
  const count = (field: string) => (Number.isSafeInteger(sent[field]) ? (sent[field] as number) : 0)
  const [prompt_tokens, completion_tokens] = [count('prompt_tokens'), count('completion_tokens')]
  const total_tokens = count('total_tokens') || prompt_tokens + completion_tokens
  return { ...sent, prompt_tokens, completion_tokens, total_tokens }
}

/** The tokens of all rounds; details only one round gave stay as they were. */
export function addUsage(sum: Usage | undefined, usage: Usage | undefined): Usage | undefined {
  if (sum === undefined || usage === undefined) return sum ?? usage
  return {
    ...sum,
    ...usage,
    prompt_tokens: sum.prompt_tokens + usage.prompt_tokens,
    completion_tokens: sum.completion_tokens + usage.completion_tokens,
    total_tokens: sum.total_tokens + usage.total_tokens,
  }
}
