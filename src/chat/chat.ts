/** Answers a chat request, as one object or as a stream: the one verb behind every way to chat. */
import { EventStream, JsonBytes } from '../rpc/answer.ts'
import { addressGroup } from '../rpc/authorize.ts'
import type { CallContext } from '../rpc/context.ts'
import type { SlotOwner } from '../rpc/stream-slots.ts'
import { completeTurn } from './complete.ts'
import type { OnAnswering } from './rounds.ts'
import type { ChatRequest } from './schema.ts'
import { streamTurn } from './stream.ts'
import { prepareTurn } from './turn.ts'

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
  if (!request.stream) return new JsonBytes(await completeTurn(context.deps, turn, signal, onAnswering))
  const takeSlots = () => context.deps.streams.take(slotOwners(context))
  return new EventStream(streamTurn(context.deps, turn, signal, { onAnswering, takeSlots }))
}

/** Decision: 2 (`PARLEY_MAX_STREAMS_…`): the address counts on agent keys only, which are public. */
function slotOwners({ deps, caller, arrival }: CallContext): SlotOwner[] {
  const { streams } = deps.config.limits
  if (caller.kind === 'parent') return [{ key: `parent:${caller.tenantId}`, limit: streams.parent }]
  return [
    { key: `agent:${caller.agentId}`, limit: streams.agent },
    { key: `agent:${caller.agentId}:${addressGroup(arrival.clientAddress)}`, limit: streams.address },
  ]
}
