/** Answers a chat request, as one object or as a stream: the one verb behind every way to chat. */
import { AGENT_PREFIX } from '../models/schema.ts'
import { EventStream, JsonBytes } from '../rpc/answer.ts'
import type { CallContext } from '../rpc/context.ts'
import type { SlotOwner } from '../rpc/stream-slots.ts'
import type { Booking } from '../usage/booking.ts'
import { completeTurn } from './complete.ts'
import type { OnAnswering, OnUsage } from './rounds.ts'
import type { ChatRequest } from './schema.ts'
import { streamTurn } from './stream.ts'
import { prepareTurn, type Turn } from './turn.ts'

/**
 * Answers with a stream when the request asks for one. The headers name who answered.
 * @throws ServiceError as `prepareTurn` and the backend's failures do; a stream's failures come with its first event.
 */
export async function chat(
  context: CallContext,
  request: ChatRequest,
  signal: AbortSignal,
): Promise<JsonBytes | EventStream> {
  const turn = await prepareTurn(context.deps, context.caller, request)
  const onAnswering: OnAnswering = (provider, attempts) => {
    context.setHeader('X-Parley-Provider', provider)
    context.setHeader('X-Parley-Attempts', String(attempts))
  }
  const answering: Answering = { context, request, turn, signal, onAnswering }
  if (request.stream) return new EventStream(streamWithinSlots(answering))
  return new JsonBytes(await completeBooked(answering))
}

interface Answering {
  readonly context: CallContext
  readonly request: ChatRequest
  readonly turn: Turn
  readonly signal: AbortSignal
  readonly onAnswering: OnAnswering
}

async function completeBooked(answering: Answering): Promise<Uint8Array> {
  const { context, turn, signal, onAnswering } = answering
  const booking = await beginBooking(answering)
  const onUsage: OnUsage = (usage, said) => booking.used(usage, said)
  try {
    const answer = await completeTurn(
      context.deps,
      turn,
      signal,
      bookAnswering(booking, onAnswering),
      onUsage,
    )
    await booking.end('ok')
    return answer
  } catch (thrown) {
    await booking.fail(thrown, signal)
    throw thrown
  }
}

/** Holds a stream's slots for as long as it runs, and books it however it ends. */
async function* streamWithinSlots(answering: Answering): AsyncGenerator<Uint8Array, void, void> {
  const { context, turn, signal, onAnswering } = answering
  const giveBack = context.deps.streams.take(slotOwners(context))
  let booking: Booking | undefined
  try {
    booking = await beginBooking(answering)
    const onUsage: OnUsage = (usage) => booking?.used(usage)
    const onBookedAnswering = bookAnswering(booking, onAnswering)
    for await (const run of streamTurn(context.deps, turn, signal, onBookedAnswering, onUsage)) {
      booking.sent(run)
      yield run
    }
    await booking.end('ok')
  } catch (thrown) {
    await booking?.fail(thrown, signal)
    throw thrown
  } finally {
    giveBack()
    // Whoever stops reading ends up here at once.
    await booking?.end('left')
  }
}

/** Who answers in the end may be another than the one first asked. */
function bookAnswering(booking: Booking, onAnswering: OnAnswering): OnAnswering {
  return (provider, attempts) => {
    booking.answering(provider)
    onAnswering(provider, attempts)
  }
}

/** @throws ServiceError `insufficient_quota` */
function beginBooking({ context, request, turn }: Answering): Promise<Booking> {
  const { deps, caller, arrival } = context
  const named = request.model?.startsWith(AGENT_PREFIX) ? request.model.slice(AGENT_PREFIX.length) : undefined
  return deps.usage.begin({
    requestId: arrival.requestId,
    tenantId: caller.tenantId,
    agentId: caller.kind === 'agent' ? caller.agentId : named,
    provider: turn.route.backend.name,
    model: turn.route.model,
    isStreamed: request.stream === true,
    request: turn.request,
  })
}

/** Decision: 2 (`PARLEY_MAX_STREAMS_…`): the address counts on agent keys only, which are public. */
function slotOwners({ deps, caller, arrival }: CallContext): SlotOwner[] {
  const { streams } = deps.config.limits
  if (caller.kind === 'parent') return [{ key: `parent:${caller.tenantId}`, limit: streams.parent }]
  return [
    { key: `agent:${caller.agentId}`, limit: streams.agent },
    { key: `agent:${caller.agentId}:${arrival.clientAddress}`, limit: streams.address },
  ]
}
