/** Answers a chat request, as one object or as a stream: the one verb behind every way to chat. */

import type { Caller } from '../keys/schema.ts'
import { AGENT_PREFIX } from '../models/schema.ts'
import { EventStream, JsonBytes } from '../rpc/answer.ts'
import { addressGroup } from '../rpc/authorize.ts'
import type { CallContext } from '../rpc/context.ts'
import type { SlotOwner } from '../shared-state/stream-slots.ts'
import type { Booking } from '../usage/booking.ts'
import type { Dependencies } from './dependencies.ts'
import type { OnAnswering } from './rounds.ts'
import { collect, runTurn } from './run-turn.ts'
import type { ChatRequest } from './schema.ts'
import { prepareTurn, type Turn, type TurnTrial } from './turn.ts'

/** What is particular to an answer that an owner tries out. */
export interface ChatTrial extends TurnTrial {
  readonly onAnswering: OnAnswering | undefined
}

/**
 * Answers with a stream when the request asks for one. The headers name who answered.
 * @throws ServiceError as `prepareTurn` and the backend's failures do; a stream's failures come with its first event.
 */
export async function chat(
  context: CallContext<Caller, Dependencies>,
  request: ChatRequest,
  signal: AbortSignal,
  trial?: ChatTrial,
): Promise<JsonBytes | EventStream> {
  const turn = await prepareTurn(context, request, trial)
  const onAnswering: OnAnswering = (attempts) => {
    trial?.onAnswering?.(attempts)
    const { route, count, isFallback } = attempts
    context.setHeader('X-Parley-Provider', route.backend.name)
    context.setHeader('X-Parley-Attempts', String(count))
    context.setHeader('X-Parley-Fallback', String(isFallback))
  }
  const pieces = runTurn(context.deps, turn, signal, {
    onAnswering,
    takeSlots: () => context.deps.shared.streams.take(slotOwners(context)),
    beginUsage: () => beginBooking(context, request, turn),
  })
  return request.stream ? new EventStream(pieces) : new JsonBytes(await collect(pieces))
}

/** @throws ServiceError `insufficient_quota` */
function beginBooking(
  { deps, caller, arrival }: CallContext<Caller, Dependencies>,
  request: ChatRequest,
  turn: Turn,
): Promise<Booking> {
  const named = request.model?.startsWith(AGENT_PREFIX) ? request.model.slice(AGENT_PREFIX.length) : undefined
  return deps.usage.begin({
    operation: 'chat',
    requestId: arrival.requestId,
    tenantId: caller.tenantId,
    agentId: caller.kind === 'agent' ? caller.agentId : named,
    provider: turn.routes[0].backend.name,
    model: turn.routes[0].model,
    isStreamed: request.stream === true,
    request: turn.request,
  })
}

/** Decision: 2 (`PARLEY_MAX_STREAMS_…`): the address counts on agent keys only, which are public. */
function slotOwners({ deps, caller, arrival }: CallContext<Caller, Dependencies>): SlotOwner[] {
  const { streams } = deps.config.limits
  if (caller.kind === 'parent') return [{ key: `parent:${caller.tenantId}`, limit: streams.parent }]
  return [
    { key: `agent:${caller.agentId}`, limit: streams.agent },
    { key: `agent:${caller.agentId}:${addressGroup(arrival.clientAddress)}`, limit: streams.address },
  ]
}
