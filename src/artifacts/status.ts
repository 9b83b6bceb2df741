/** How an artifact is doing: asked for once, awaited, or watched. */
import { setTimeout as wait } from 'node:timers/promises'
import { unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { addressGroup } from '../operations/access.ts'
import { type Call, type CallContext, EventStream } from '../operations/operation.ts'
import type { SlotOwner } from '../replicas/stream-limiter.ts'
import { type ArtifactCaller, assertFor, assertUse } from './access.ts'
import type { Dependencies } from './dependencies.ts'
import type { ArtifactDesk } from './processing.ts'
import {
  type ArtifactStatus,
  type ArtifactStatusQuery,
  type ArtifactView,
  MAX_WAIT_SECONDS,
  renderStatus,
} from './schema.ts'
import { findViewRow } from './store.ts'

type StatusDeps = Pick<Dependencies, 'db' | 'clock'>

type WatchDeps = StatusDeps & Pick<Dependencies, 'config' | 'keys'> & { readonly artifacts: ArtifactDesk }

/** Changes that other processes make are not announced here. */
const LOOK_EVERY_MS = 2_000

/** Progress is told at most four times a second. */
const PROGRESS_EVERY_MS = 250

/**
 * The status of an artifact; `unknown` for what the caller's tenant never began to upload. It reads one row and waits for nobody.
 * Contract: Artifact status.
 * @throws ServiceError `insufficient_permissions` for a token that is for something else.
 */
export async function readStatus(
  { db, clock }: StatusDeps,
  caller: ArtifactCaller,
  id: string,
): Promise<ArtifactStatus> {
  assertUse(caller, 'view')
  const row = await findViewRow(db, caller.tenantId, id)
  assertFor(caller, id, row)
  return renderStatus(id, row !== undefined && isThere(row, unixSeconds(clock)) ? row : undefined)
}

function isThere({ state, expires_at: expiresAt }: ArtifactView, now: number): boolean {
  return state !== 'unknown' && (expiresAt === null || expiresAt > now)
}

/** The status as soon as it is another than now; after so many milliseconds, or when the caller leaves, whatever it is then. */
export async function awaitStatus(
  deps: WatchDeps,
  caller: ArtifactCaller,
  id: string,
  { waitMs, signal }: { readonly waitMs: number; readonly signal: AbortSignal },
): Promise<ArtifactStatus> {
  const enough = AbortSignal.any([signal, AbortSignal.timeout(waitMs)])
  const statuses = watchStatus(deps, caller, id, enough)
  const { value: first } = await statuses.next()
  const { value: second } = await statuses.next()
  await statuses.return()
  return second ?? first ?? (await readStatus(deps, caller, id))
}

/**
 * The status, and every other one it becomes, until the signal aborts or the time for streams is over.
 * @throws ServiceError as `readStatus`; `invalid_api_key` once the caller's credential is not good any more.
 */
export async function* watchStatus(
  deps: WatchDeps,
  caller: ArtifactCaller,
  id: string,
  signal: AbortSignal,
): AsyncGenerator<ArtifactStatus, void, void> {
  const { clock, artifacts, config } = deps
  const endsAtMs = clock.monotonic() + config.timings.streamMaxMs
  const news = new News()
  const stopListening = artifacts.changes.listen(id, () => news.arrive())
  let last = { text: '', state: '', atMs: 0 }
  try {
    while (!signal.aborted && clock.monotonic() < endsAtMs) {
      await assertStillGood(deps, caller)
      const status = await readStatus(deps, caller, id)
      const text = JSON.stringify(status)
      const pauseMs = status.state === last.state ? last.atMs + PROGRESS_EVERY_MS - clock.monotonic() : 0
      if (text !== last.text && pauseMs <= 0) {
        last = { text, state: status.state, atMs: clock.monotonic() }
        yield status
      } else await news.wait(text === last.text ? LOOK_EVERY_MS : pauseMs, signal)
    }
  } finally {
    stopListening()
  }
}

/** @throws ServiceError `invalid_api_key` */
async function assertStillGood({ keys, clock }: WatchDeps, caller: ArtifactCaller): Promise<void> {
  const hasExpired = caller.kind === 'token' && caller.expiresAt <= unixSeconds(clock)
  if (hasExpired || !(await keys.isLive(caller.tenantId)))
    throw new ServiceError('invalid_api_key', 'The key or token is not valid any more.')
}

/** Wakes whoever waits for something to happen, also for what happened just before. */
class News {
  private hasArrived = false
  private wake: () => void = () => {}

  arrive(): void {
    this.hasArrived = true
    this.wake()
  }

  /** Resolves at the next news, after so many milliseconds, or when the signal aborts. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    const awake = new AbortController()
    this.wake = () => awake.abort()
    if (this.hasArrived) awake.abort()
    await wait(ms, undefined, { signal: AbortSignal.any([signal, awake.signal]) }).catch(() => {})
    this.hasArrived = false
  }
}

type SlotDeps = Dependencies & { readonly artifacts: ArtifactDesk }

/** Decision: 9 (Status; beyond polling). */
export function answerStatus(
  call: Call<SlotDeps, ArtifactCaller, ArtifactStatusQuery>,
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
  { context, signal }: Pick<Call<SlotDeps, ArtifactCaller, unknown>, 'context' | 'signal'>,
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
function slotOwners({ deps, caller, metadata }: CallContext<ArtifactCaller, SlotDeps>): SlotOwner[] {
  const { streams } = deps.config.limits
  if (caller.kind === 'parent') return [{ key: `watch:${caller.tenantId}`, limit: streams.parent }]
  const key = `watch:${caller.artifactId}:${addressGroup(metadata.clientAddress)}`
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
