/** Runs one turn: asks the model, runs the tools it calls, asks again, and yields the answer as bytes for the client. */

import { newId } from '../keys/format.ts'
import type { GiveBack } from '../shared-state/stream-slots.ts'
import type { Booking } from '../usage/booking.ts'
import { type AnswerNames, newNames } from './answer-parts.ts'
import { type AttemptDeps, Attempts } from './attempts.ts'
import { beginChatCalls } from './call-span.ts'
import { Deadline } from './deadline.ts'
import type { Dependencies } from './dependencies.ts'
import { toCallerError, toInterruption } from './failures.ts'
import { askForStream, askForWhole, type ModelAnswer } from './model-answer.ts'
import { type OnAnswering, Rounds } from './rounds.ts'
import { backendBody, type Turn } from './turn.ts'

type TurnDeps = Pick<Dependencies, 'config' | 'clock' | 'random'> & AttemptDeps

/** What a turn takes hold of before it asks a model. Each is let go of when the turn ends, however it ends. */
export interface TurnResources {
  /** Takes what an open stream counts against; throws when there is none left. */
  readonly takeSlots: () => Promise<GiveBack> | GiveBack
  /** Opens the usage record; throws when a budget is spent. */
  readonly beginUsage: () => Promise<Booking>
  /** Called once, before the first byte of the answer. */
  readonly onAnswering: OnAnswering
}

/**
 * The answer: events as the model writes them when the request asks for a stream, else one piece that is the whole object.
 * @throws ServiceError before the first piece with the failure's own status, later as an interruption.
 */
export async function* runTurn(
  deps: TurnDeps,
  turn: Turn,
  client: AbortSignal,
  { takeSlots, beginUsage, onAnswering }: TurnResources,
): AsyncGenerator<Uint8Array, void, void> {
  const isStream = turn.request.stream === true
  const ask = isStream ? askForStream : askForWhole
  const attempts = new Attempts(deps, turn.routes, beginChatCalls(turn.trace.span, turn.request))
  const rounds = new Rounds(turn)
  let names: AnswerNames | undefined
  let hasBegun = false
  let usage: Booking | undefined
  let releaseSlots: GiveBack | undefined
  let deadline: Deadline | undefined
  let answer: ModelAnswer | undefined
  try {
    if (isStream) releaseSlots = await takeSlots()
    deadline = new Deadline(client, ...timeoutsOf(deps.config, isStream))
    usage = await beginUsage()
    const { signal } = deadline

    const begin = () => {
      if (hasBegun) return
      hasBegun = true
      deadline?.begin()
      attempts.commit()
      usage?.answering(attempts.route.backend.name, attempts.route.model)
      onAnswering(attempts)
    }
    for (;;) {
      answer = await attempts.run(signal, ({ backend, model }, span) =>
        ask(backend, { body: backendBody(rounds.request, model, isStream), signal }, span, {
          choices: turn.request.n ?? 1,
          holdsCalls: turn.tools !== undefined,
          continued: names,
          newNames: () => newNames(deps, model),
          newCallId: () => newId('call_', 24, deps.random),
        }),
      )
      try {
        for (let piece = answer.first; piece !== undefined; piece = await answer.next()) {
          begin()
          usage.sent(piece)
          yield piece
        }
      } catch (thrown) {
        attempts.breakOff(thrown)
        answer.fail(thrown)
        throw thrown
      } finally {
        usage.used(answer.usage, answer.text)
      }
      // Its connection is free before any tool runs.
      await answer.close()
      rounds.used(answer.usage)
      names ??= answer.names
      const calls = answer.callsOf(0)
      if (rounds.isLast(calls)) {
        begin()
        yield* answer.finish(turn, rounds, names)
        break
      }
      await rounds.goOn(answer.message(), calls, signal)
    }
    await usage.end('ok')
  } catch (thrown) {
    const failure = hasBegun && isStream ? toInterruption(thrown) : toCallerError(thrown)
    turn.trace.end(failure)
    await usage?.fail(failure, client)
    throw failure
  } finally {
    // Also where nobody reads the answer any more; what has ended above ends once.
    releaseSlots?.()
    deadline?.release()
    await answer?.close()
    await usage?.end('left')
    turn.trace.end()
  }
}

/** A whole answer is the piece it consists of. */
export async function collect(pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const collected: Uint8Array[] = []
  for await (const piece of pieces) collected.push(piece)
  return collected.length === 1 ? (collected[0] as Uint8Array) : Buffer.concat(collected)
}

/** Until the first piece, and from there to the end. */
function timeoutsOf(
  { timings }: Pick<Dependencies, 'config'>['config'],
  isStream: boolean,
): [number, number] {
  return isStream
    ? [timings.backendFirstEventMs, timings.streamMaxMs]
    : [timings.backendTotalMs, timings.backendTotalMs]
}
