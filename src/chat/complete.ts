/** A turn answered as one object: the backend's own bytes where nothing had to be mended. */
import type { Deps } from '../deps.ts'
import { newId } from '../keys/format.ts'
import type { ModelRoute } from '../models/catalogue.ts'
import type { TraceSpan } from '../observability/tracing.ts'
import type { Booking } from '../usage/booking.ts'
import { newNames } from './answer-parts.ts'
import { type AttemptDeps, Attempts } from './attempts.ts'
import { beginChatCalls, toAnswerAttributes } from './call-span.ts'
import { type Completion, readCompletion } from './completion.ts'
import { Deadline } from './deadline.ts'
import { toCallerError } from './failures.ts'
import { type OnAnswering, Rounds } from './rounds.ts'
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
  const attempts = new Attempts(deps, turn.routes, beginChatCalls(turn.trace.span, turn.request))
  const rounds = new Rounds(turn)
  let saidBefore = ''
  const ask = async ({ backend, model }: ModelRoute, span: TraceSpan | undefined) => {
    const body = backendBody(rounds.request, model, false)
    const bytes = await backend.complete({ body, signal, trace: span?.headers })
    const ids = {
      newNames: () => newNames(deps, model),
      newCallId: () => newId('call_', 24, deps.random),
    }
    const read = readCompletion(bytes, ids)
    if (span !== undefined) endCall(span, read.completion)
    return { bytes, ...read }
  }
  try {
    for (;;) {
      const { bytes, completion, isMended } = await attempts.run(signal, ask)
      rounds.used(completion.usage)
      const { message } = completion.choices[0]
      booking.used(completion.usage, message.content)
      const calls = message.tool_calls ?? []
      if (!rounds.isLast(calls)) {
        await rounds.goOn(message, calls, signal)
        saidBefore += message.content ?? ''
        continue
      }
      booking.answering(attempts.route.backend.name, attempts.route.model)
      onAnswering(attempts)
      const isStripped = turn.tools !== undefined && stripCalls(rounds, completion)
      if (!isMended && !isStripped && rounds.isFirst) return bytes
      if (saidBefore !== '') message.content = saidBefore + (message.content ?? '')
      return Buffer.from(JSON.stringify({ ...completion, usage: rounds.usage }))
    }
  } catch (thrown) {
    throw toCallerError(thrown)
  } finally {
    deadline.release()
  }
}

function endCall(span: TraceSpan, completion: Completion): void {
  const { id, model, usage, choices } = completion
  const names = { id: String(id), model: String(model) }
  span.set(toAnswerAttributes({ names, usage, finishReasons: choices.map((choice) => choice.finish_reason) }))
  span.end()
}

/** Takes out the calls the caller must not see; true when there were any. */
function stripCalls(rounds: Rounds, { choices }: Completion): boolean {
  let isStripped = false
  for (const choice of choices) {
    const sent = choice.message.tool_calls ?? []
    const { calls, finish } = rounds.endOf(sent, choice.finish_reason)
    if (calls.length === sent.length) continue
    isStripped = true
    if (calls.length > 0) choice.message.tool_calls = [...calls]
    else delete choice.message.tool_calls
    choice.finish_reason = finish
  }
  return isStripped
}
