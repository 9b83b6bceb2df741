/** What both ways of answering share: the rounds of a turn, in which the model is told of calls it may not make. */
import { type Deps, unixSeconds } from '../deps.ts'
import { newId } from '../keys/format.ts'
import type { Attempts } from './attempts.ts'
import type { ChatMessage, ChatRequest, Usage } from './schema.ts'
import type { ToolCall } from './tool-calls.ts'
import type { Turn } from './turn.ts'

/** The most times one turn asks its model. Decision: 7 (Tools). */
const MAX_ROUNDS = 8

/** Told once, when a backend has begun to answer. */
export type OnAnswering = (attempts: Attempts) => void

/** Which of a round's calls the agent may not make. */
export function withheldCalls({ toolNames }: Turn, calls: readonly ToolCall[]): ToolCall[] {
  if (toolNames === undefined) return []
  return calls.filter((call) => !toolNames.has(call.function?.name ?? ''))
}

/** Whether the model may be asked once more; several choices cannot be gone on with as one conversation. */
export function canAskAgain({ request }: Turn, rounds: number): boolean {
  return rounds < MAX_ROUNDS && (request.n ?? 1) === 1
}

/**
 * The messages of the next round: what the model said, and an error for each call it may not make. Its other calls are left out: it
 * is asked again, and repeats what it still wants. Decision: 7 (Tools).
 */
export function continueMessages(
  messages: ChatRequest['messages'],
  said: string | null,
  withheld: readonly ToolCall[],
): ChatRequest['messages'] {
  return [
    ...messages,
    { role: 'assistant', content: said || null, tool_calls: [...withheld] },
    ...withheld.map(
      (call): ChatMessage => ({
        role: 'tool',
        tool_call_id: call.id,
        content: `Error: there is no tool '${call.function?.name ?? ''}' here. Answer without it.`,
      }),
    ),
  ]
}

/** The finish of a choice once its withheld calls are gone. */
export function finishAfter(
  finish: string,
  calls: readonly ToolCall[],
  allowed: readonly ToolCall[],
): string {
  if (allowed.length > 0) return 'tool_calls'
  return calls.length > 0 || finish === 'tool_calls' ? 'stop' : finish
}

/** How an answer names itself. Contract: Chat completion (response). */
export interface AnswerNames {
  readonly id: string
  /** Unix seconds. */
  readonly created: number
  readonly model: string
}

/** Names for an answer whose backend gives it none. */
export function newNames({ clock, random }: Pick<Deps, 'clock' | 'random'>, model: string): AnswerNames {
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
