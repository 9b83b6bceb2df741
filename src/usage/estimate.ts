/** Estimates the tokens of calls that have no budget and whose provider reported no usage. */
import type { Promptlike } from '../budgets/enforcer.ts'

const CHARACTERS_PER_TOKEN = 4

export function estimateTokens(characters: number): number {
  return Math.ceil(characters / CHARACTERS_PER_TOKEN)
}

/** Estimates the tokens in the inputs, or in the conversation and its tools; images and audio count as 0. */
export function estimatePromptTokens(prompt: Promptlike): number {
  if (!('messages' in prompt)) return estimateInputTokens(prompt)
  const { messages, tools } = prompt
  const characters = messages.reduce((sum, message) => sum + charactersOf(message), 0)
  return estimateTokens(characters + (tools?.length ? JSON.stringify(tools).length : 0))
}

function estimateInputTokens({ input }: Extract<Promptlike, { input: unknown }>): number {
  if (typeof input === 'string') return estimateTokens(input.length)
  return input.reduce<number>((sum, item) => {
    if (typeof item === 'number') return sum + 1
    return sum + (typeof item === 'string' ? estimateTokens(item.length) : item.length)
  }, 0)
}

function charactersOf(message: { content?: unknown; tool_calls?: unknown }): number {
  const { content, tool_calls: calls } = message
  const called = Array.isArray(calls) ? JSON.stringify(calls).length : 0
  if (typeof content === 'string') return content.length + called
  if (!Array.isArray(content)) return called
  return content.reduce((sum, part) => sum + (typeof part?.text === 'string' ? part.text.length : 0), called)
}

const LF = 0x0a

/** Counts events, each of which is one line followed by an empty line. */
export function countEvents(run: Uint8Array): number {
  let events = 0
  for (let at = run.indexOf(LF); at !== -1; at = run.indexOf(LF, at + 2)) events += 1
  return events
}
