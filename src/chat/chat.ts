/** Answers a chat request, as one object or as a stream: the one verb behind every way to chat. */

import { newId } from '../lib/ids.ts'
import { AGENT_PREFIX } from '../models/schema.ts'
import { addressGroup } from '../operations/authorize.ts'
import { type CallContext, type Caller, EventStream, JsonBytes } from '../operations/operation.ts'
import { beginChatCalls } from '../providers/call-span.ts'
import type { AnswerNames, ChatRequest } from '../providers/chat-api.ts'
import { toCallerError, toInterruption } from '../providers/failures.ts'
import { type AttemptDeps, Attempts, Deadline } from '../providers/retry.ts'
import type { Release, StreamQuota } from '../replicas/stream-limiter.ts'
import type { UsageRecord } from '../usage/tracker.ts'
import type { Dependencies } from './dependencies.ts'
import { backendBody, prepareTurn, type Turn, type TurnTrial } from './prepare-turn.ts'
import { askForStream } from './streamed-answer.ts'
import { type ModelAnswer, newNames, type OnAnswering, Rounds } from './tool-loop.ts'
import { askForWhole } from './whole-answer.ts'

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
    takeSlots: () => context.deps.shared.streams.acquire(slotOwners(context)),
    beginUsage: () => beginBooking(context, request, turn),
  })
  return request.stream ? new EventStream(pieces) : new JsonBytes(await collect(pieces))
}

/** @throws ServiceError `insufficient_quota` */
function beginBooking(
  { deps, caller, arrival }: CallContext<Caller, Dependencies>,
  request: ChatRequest,
  turn: Turn,
): Promise<UsageRecord> {
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
function slotOwners({ deps, caller, arrival }: CallContext<Caller, Dependencies>): StreamQuota[] {
  const { streams } = deps.config.limits
  if (caller.kind === 'parent') return [{ key: `parent:${caller.tenantId}`, limit: streams.parent }]
  return [
    { key: `agent:${caller.agentId}`, limit: streams.agent },
    { key: `agent:${caller.agentId}:${addressGroup(arrival.clientAddress)}`, limit: streams.address },
  ]
}

type TurnDeps = Pick<Dependencies, 'config' | 'clock' | 'random'> & AttemptDeps

/** What a turn takes hold of before it asks a model. Each is let go of when the turn ends, however it ends. */
export interface TurnResources {
  /** Takes what an open stream counts against; throws when there is none left. */
  readonly takeSlots: () => Promise<Release> | Release
  /** Opens the usage record; throws when a budget is spent. */
  readonly beginUsage: () => Promise<UsageRecord>
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
  let usage: UsageRecord | undefined
  let releaseSlots: Release | undefined
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
