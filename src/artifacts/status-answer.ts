/** Answers a question for a status the way it is asked: at once, when there is news, or as a stream of events. */

import type { ServiceError } from '../errors.ts'
import { EventStream } from '../rpc/answer.ts'
import { addressGroup } from '../rpc/authorize.ts'
import type { CallContext } from '../rpc/context.ts'
import type { Call } from '../rpc/op.ts'
import type { SlotOwner } from '../shared-state/stream-slots.ts'
import type { ArtifactCaller } from './access.ts'
import type { Dependencies } from './dependencies.ts'
import type { ArtifactDesk } from './desk.ts'
import type { ArtifactStatus, ArtifactStatusQuery } from './schema.ts'
import { awaitStatus, MAX_WAIT_SECONDS, readStatus, watchStatus } from './status.ts'

type WatchDeps = Dependencies & { readonly artifacts: ArtifactDesk }

/** Decision: 9 (Status; beyond polling). */
export function answerStatus(
  call: Call<WatchDeps, ArtifactCaller, ArtifactStatusQuery>,
): EventStream | Promise<ArtifactStatus> {
  const { context, input } = call
  const { deps, caller } = context
  const { artifact_id: id } = input
  if (call.wantsEvents) return new EventStream(encode(watchInSlot(call, id)), tellFailure)
  const waitSeconds = readWaitSeconds(input.prefer)
  // The signal costs something, so it is not asked for without need.
  if (waitSeconds === undefined) return readStatus(deps, caller, id)
  context.setHeader('Preference-Applied', `wait=${waitSeconds}`)
  return awaitStatus(deps, caller, id, { waitMs: waitSeconds * 1000, signal: call.signal })
}

/** Watches, as one of the streams the caller may have open at once. @throws ServiceError `rate_limit_exceeded` */
export async function* watchInSlot(
  { context, signal }: Pick<Call<WatchDeps, ArtifactCaller, unknown>, 'context' | 'signal'>,
  id: string,
): AsyncGenerator<ArtifactStatus, void, void> {
  const giveBack = await context.deps.shared.streams.take(slotOwners(context))
  try {
    yield* watchStatus(context.deps, context.caller, id, signal)
  } finally {
    giveBack()
  }
}

/** Decision: 2 (`PARLEY_MAX_STREAMS_…`): a token may be in a page that anybody opens, so its address counts. */
function slotOwners({ deps, caller, arrival }: CallContext<ArtifactCaller, WatchDeps>): SlotOwner[] {
  const { streams } = deps.config.limits
  if (caller.kind === 'parent') return [{ key: `watch:${caller.tenantId}`, limit: streams.parent }]
  const key = `watch:${caller.artifactId}:${addressGroup(arrival.clientAddress)}`
  return [{ key, limit: streams.address }]
}

async function* encode(statuses: AsyncIterable<ArtifactStatus>): AsyncGenerator<Uint8Array, void, void> {
  for await (const status of statuses) yield Buffer.from(`data: ${JSON.stringify(status)}\n\n`)
}

function tellFailure({ message }: ServiceError): Uint8Array {
  return Buffer.from(`event: error\ndata: ${JSON.stringify({ ok: false, error: message })}\n\n`)
}

/** The seconds of `Prefer: wait=N`; undefined where nothing is preferred that is known here. Protocol: RFC 7240, 4.3. */
export function readWaitSeconds(header: string | undefined): number | undefined {
  const [, digits] = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:[,;]|$)/i.exec(header ?? '') ?? []
  return digits === undefined ? undefined : Math.min(Number(digits), MAX_WAIT_SECONDS)
}
