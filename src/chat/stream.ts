/** A turn answered as a stream: whole events, forwarded as they arrive, one finish, usage on request. */
import type { Deps } from '../deps.ts'
import { newId } from '../keys/format.ts'
import type { ModelRoute } from '../models/catalogue.ts'
import type { TraceSpan } from '../observability/tracing.ts'
import type { GiveBack } from '../shared-state/stream-slots.ts'
import type { Booking } from '../usage/booking.ts'
import { type AnswerNames, newNames, noUsage } from './answer-parts.ts'
import { type AttemptDeps, Attempts } from './attempts.ts'
import { beginChatCalls } from './call-span.ts'
import { Deadline } from './deadline.ts'
import { encodeEvent } from './event-reader.ts'
import { toCallerError, toInterruption } from './failures.ts'
import { Round } from './round.ts'
import { type OnAnswering, Rounds } from './rounds.ts'
import { backendBody, type Turn } from './turn.ts'

type StreamDeps = Pick<Deps, 'config' | 'clock' | 'random'> & AttemptDeps

/** What a stream does beside its events. */
export interface StreamHooks {
  readonly onAnswering: OnAnswering
  /** Takes what an open stream counts against, and returns what gives it back; throws when there is none left. */
  readonly takeSlots: () => Promise<GiveBack> | GiveBack
  /** Opens the booking of the call, once it has its slots; throws when a budget is spent. */
  readonly begin: () => Promise<Booking>
}

/**
 * The turn's events, in runs of whole ones; the end of the iteration is the end of the answer.
 * @throws ServiceError before the first event with the failure's own status, later as an interruption.
 */
export async function* streamTurn(
  deps: StreamDeps,
  turn: Turn,
  caller: AbortSignal,
  { onAnswering, takeSlots, begin }: StreamHooks,
): AsyncGenerator<Uint8Array, void, void> {
  const giveBackSlots = await takeSlots()
  const { timings } = deps.config
  const deadline = new Deadline(caller, timings.backendFirstEventMs, timings.streamMaxMs)
  const attempts = new Attempts(deps, turn.routes, beginChatCalls(turn.trace.span, turn.request))
  const rounds = new Rounds(turn)
  let names: AnswerNames | undefined
  let round: Round | undefined
  let booking: Booking | undefined
  try {
    booking = await begin()
    for (;;) {
      const { signal } = deadline
      round = await attempts.run(signal, (route, span) =>
        openRound(deps, turn, route, { rounds, names, signal, span }),
      )
      if (rounds.isFirst) {
        deadline.begin()
        attempts.commit()
        booking.answering(attempts.route.backend.name, attempts.route.model)
        onAnswering(attempts)
      }
      try {
        for (let run = round.first; run !== undefined; run = await round.next()) {
          booking.sent(run)
          yield run
        }
      } catch (thrown) {
        attempts.breakOff(thrown)
        round.breakOff(thrown)
        throw thrown
      } finally {
        booking.used(round.mender.usage)
      }
      await round.close()
      rounds.used(round.mender.usage)
      names ??= round.mender.names
      const calls = round.mender.callsOf(0)
      if (rounds.isLast(calls)) break
      await rounds.goOn(round.said(), calls, signal)
    }
    const head = { object: 'chat.completion.chunk', ...names }
    if (turn.tools !== undefined) yield* endOfTurn(turn, rounds, round, head)
    if (turn.request.stream_options?.include_usage) {
      yield encodeEvent({ ...head, choices: [], usage: rounds.usage ?? noUsage })
    }
    await booking.end('ok')
  } catch (thrown) {
    turn.trace.end(thrown)
    const failure = round === undefined ? toCallerError(thrown) : toInterruption(thrown)
    await booking?.fail(failure, caller)
    throw failure
  } finally {
    giveBackSlots()
    deadline.release()
    await round?.close()
    // Whoever stops reading ends up here at once.
    await booking?.end('left')
    turn.trace.end()
  }
}

interface RoundStart {
  readonly rounds: Rounds
  /** What the rounds before it have called the answer. */
  readonly names: AnswerNames | undefined
  readonly signal: AbortSignal
  readonly span: TraceSpan | undefined
}

function openRound(
  deps: StreamDeps,
  turn: Turn,
  { backend, model }: ModelRoute,
  { rounds, names, signal, span }: RoundStart,
): Promise<Round> {
  const options = {
    choices: turn.request.n ?? 1,
    holdsCalls: turn.tools !== undefined,
    newCallId: () => newId('call_', 24, deps.random),
    continued: names,
    newNames: () => newNames(deps, model),
  }
  return Round.open(backend, { body: backendBody(rounds.request, model, true), signal }, options, span)
}

/** The calls that were kept back, if they are the caller's to answer, and the finish, for each choice. */
function* endOfTurn(turn: Turn, rounds: Rounds, { mender }: Round, head: object): Generator<Uint8Array> {
  for (let index = 0; index < (turn.request.n ?? 1); index++) {
    const finish = mender.finishOf(index)
    if (finish === undefined) continue
    const end = rounds.endOf(mender.callsOf(index), finish)
    if (end.calls.length > 0) {
      const delta = { tool_calls: end.calls.map((call, position) => ({ index: position, ...call })) }
      yield encodeEvent({ ...head, choices: [{ index, delta, finish_reason: null }] })
    }
    yield encodeEvent({ ...head, choices: [{ index, delta: {}, finish_reason: end.finish }] })
  }
}
