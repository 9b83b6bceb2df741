/** A turn answered as one object: the backend's own bytes where nothing had to be mended. */
import type { Deps } from '../deps.ts'
import { newId } from '../keys/format.ts'
import { type AttemptBudget, withAttempts } from './attempts.ts'
import { BackendFailure } from './backend.ts'
import { Deadline } from './deadline.ts'
import { toCallerError } from './failures.ts'
import {
  addUsage,
  canAskAgain,
  continueMessages,
  finishAfter,
  type OnAnswering,
  type OnUsage,
  withheldCalls,
} from './rounds.ts'
import type { Usage } from './schema.ts'
import { argumentsText, type ToolCall } from './tool-calls.ts'
import { backendBody, type Turn } from './turn.ts'

type Fields = Record<string, unknown>

interface Completion extends Fields {
  choices: Choice[]
  usage?: Usage
}

interface Choice extends Fields {
  message: Fields & { content?: string | null; tool_calls?: ToolCall[] | null }
  finish_reason?: string | null
}

/**
 * The turn's `chat.completion` as JSON bytes.
 * @throws ServiceError as the backend's failure maps to one.
 */
export async function completeTurn(
  deps: Pick<Deps, 'config' | 'clock' | 'random'>,
  turn: Turn,
  caller: AbortSignal,
  onAnswering: OnAnswering,
  onUsage: OnUsage,
): Promise<Uint8Array> {
  const { timings, limits } = deps.config
  const deadline = new Deadline(caller, timings.backendTotalMs, timings.backendTotalMs)
  const budget: AttemptBudget = { attempts: 0, retriesLeft: limits.backendAttempts - 1 }
  const { backend } = turn.route
  let { messages } = turn.request
  let usage: Usage | undefined
  try {
    for (let rounds = 1; ; rounds++) {
      const body = backendBody(turn, messages, false)
      const call = () => backend.complete({ body, signal: deadline.signal })
      const bytes = await withAttempts(deps, budget, deadline.signal, call)
      const completion = parseCompletion(bytes)
      const isMended = mendCompletion(completion, () => newId('call_', 24, deps.random))
      usage = addUsage(usage, completion.usage)
      const { message } = completion.choices[0] as Choice
      onUsage(completion.usage, message.content)
      const withheld = withheldCalls(turn, message.tool_calls ?? [])
      if (withheld.length > 0 && canAskAgain(turn, rounds)) {
        messages = continueMessages(messages, message.content ?? null, withheld)
        continue
      }
      onAnswering(backend.name, budget.attempts)
      const isStripped = turn.toolNames !== undefined && stripWithheld(turn, completion)
      if (!isMended && !isStripped && rounds === 1) return bytes
      return Buffer.from(JSON.stringify({ ...completion, usage }))
    }
  } catch (thrown) {
    throw toCallerError(thrown)
  } finally {
    deadline.release()
  }
}

function parseCompletion(bytes: Uint8Array): Completion {
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8'))
  } catch (cause) {
    throw new BackendFailure('protocol', 'the answer is not JSON', { cause })
  }
  const completion = value as Partial<Completion> | null
  const choices = completion?.choices
  if (!Array.isArray(choices) || !choices.every(hasMessage) || choices.length === 0) {
    throw new BackendFailure('protocol', 'the answer has no choices with messages')
  }
  return completion as Completion
}

function hasMessage(choice: unknown): choice is Choice {
  const message = (choice as Partial<Choice> | null)?.message
  return typeof message === 'object' && message !== null
}

/** Fills in what every client relies on; true when something was missing. Decision: 12. */
function mendCompletion(completion: Completion, newCallId: () => string): boolean {
  let isMended = false
  function fill(fields: Fields, name: string, value: unknown): void {
    if (fields[name] !== undefined) return
    fields[name] = value
    isMended = true
  }
  for (const [index, choice] of completion.choices.entries()) {
    fill(choice, 'index', index)
    fill(choice.message, 'role', 'assistant')
    fill(choice.message, 'content', null)
    fill(choice, 'finish_reason', choice.message.tool_calls?.length ? 'tool_calls' : 'stop')
    for (const call of (choice.message.tool_calls ?? []) as Fields[]) {
      fill(call, 'id', newCallId())
      fill(call, 'type', 'function')
      const called = call.function as Fields | undefined
      if (called === undefined || (typeof called.arguments === 'string' && called.arguments !== '')) continue
      called.arguments = argumentsText(called.arguments) || '{}'
      isMended = true
    }
  }
  return isMended
}

/** Takes out the calls the agent may not make; true when there were any. */
function stripWithheld(turn: Turn, { choices }: Completion): boolean {
  let isStripped = false
  for (const choice of choices) {
    const calls = choice.message.tool_calls ?? []
    const withheld = withheldCalls(turn, calls)
    if (withheld.length === 0) continue
    isStripped = true
    const allowed = calls.filter((call) => !withheld.includes(call))
    if (allowed.length > 0) choice.message.tool_calls = allowed
    else delete choice.message.tool_calls
    choice.finish_reason = finishAfter(choice.finish_reason ?? 'stop', calls, allowed)
  }
  return isStripped
}
