/** A turn answered as one object: the backend's own bytes where nothing had to be mended. */
import type { Deps } from '../deps.ts'
import { newId } from '../keys/format.ts'
import type { ModelRoute } from '../models/catalogue.ts'
import type { Booking } from '../usage/booking.ts'
import { type AttemptDeps, Attempts } from './attempts.ts'
import { type Completion, readCompletion } from './completion.ts'
import { Deadline } from './deadline.ts'
import { toCallerError } from './failures.ts'
import {
  addUsage,
  canAskAgain,
  continueMessages,
  finishAfter,
  newNames,
  type OnAnswering,
  withheldCalls,
} from './rounds.ts'
import type { Usage } from './schema.ts'
import { backendBody, type Turn } from './turn.ts'

/**
 * The turn's `chat.completion` as JSON bytes.
 * @throws ServiceError as the backend's failure maps to one.
 */
export async function completeTurn(
  deps: Pick<Deps, 'config' | 'clock' | 'random'> & AttemptDeps,
  turn: Turn,
  caller: AbortSignal,
  booking: Booking,
  onAnswering: OnAnswering,
): Promise<Uint8Array> {
  const { timings } = deps.config
  const deadline = new Deadline(caller, timings.backendTotalMs, timings.backendTotalMs)
  const { signal } = deadline
  const attempts = new Attempts(deps, turn.routes)
  let { messages } = turn.request
  let usage: Usage | undefined
  let saidBefore = ''
  const ask = async ({ backend, model }: ModelRoute) => {
    const bytes = await backend.complete({ body: backendBody(turn, model, messages, false), signal })
    const ids = {
      newNames: () => newNames(deps, model),
      newCallId: () => newId('call_', 24, deps.random),
    }
    return { bytes, ...readCompletion(bytes, ids) }
  }
  try {
    for (let rounds = 1; ; rounds++) {
      const { bytes, completion, isMended } = await attempts.run(signal, ask)
      usage = addUsage(usage, completion.usage)
      const { message } = completion.choices[0]
      booking.used(completion.usage, message.content)
      const withheld = withheldCalls(turn, message.tool_calls ?? [])
      if (withheld.length > 0 && canAskAgain(turn, rounds)) {
        messages = continueMessages(messages, message.content, withheld)
        saidBefore += message.content ?? ''
        continue
      }
      booking.answering(attempts.route.backend.name, attempts.route.model)
      onAnswering(attempts)
      const isStripped = turn.toolNames !== undefined && stripWithheld(turn, completion)
      if (!isMended && !isStripped && rounds === 1) return bytes
      if (saidBefore !== '') message.content = saidBefore + (message.content ?? '')
      return Buffer.from(JSON.stringify({ ...completion, usage }))
    }
  } catch (thrown) {
    throw toCallerError(thrown)
  } finally {
    deadline.release()
  }
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
    choice.finish_reason = finishAfter(choice.finish_reason, calls, allowed)
  }
  return isStripped
}
