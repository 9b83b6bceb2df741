/** Serves an artifact's status: immediately, after the next change (`Prefer: wait`), or as a stream. */
import { setTimeout as wait } from 'node:timers/promises'
import { unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { addressGroup, lowerLimit } from '../operations/access.ts'
import { type Call, type CallContext, EventStream } from '../operations/operation.ts'
import type { StreamQuota } from '../replicas/limits.ts'
import { type ArtifactCaller, assertAccess, assertTokenUse } from './access.ts'
import type { Dependencies } from './dependencies.ts'
import { findEnding } from './endings.ts'
import {
  type ArtifactStatus,
  type ArtifactStatusQuery,
  MAX_WAIT_SECONDS,
  renderStatus,
  renderUnknown,
} from './schema.ts'
import { findViewRow } from './store.ts'

type WatchDeps = Pick<Dependencies, 'db' | 'clock' | 'config' | 'keys' | 'artifacts'>

/** Polling interval; a poll finds changes whose notification was lost. */
const POLL_EVERY_MS = 2_000
const PROGRESS_EVERY_MS = 250

/**
 * Returns `unknown` if the tenant has no such artifact, or if it is in the bin. A caller with an upload token
 * may read only why an artifact is `unknown`. @throws ServiceError `insufficient_permissions`
 */
export async function readStatus(
  { db, clock }: Pick<Dependencies, 'db' | 'clock'>,
  caller: ArtifactCaller,
  id: string,
): Promise<ArtifactStatus> {
  const row = await findViewRow(db, caller.tenantId, id)
  const ending = row === undefined ? await findEnding(db, caller.tenantId, id) : undefined
  assertAccess(caller, id, row ?? ending)
  const now = unixSeconds(clock)
  const isBinned = row !== undefined && row.binned_at !== null
  const isOver = row === undefined || isBinned || (row.expires_at ?? Infinity) <= now
  if (!isOver || (row === undefined && ending === undefined)) assertTokenUse(caller, 'view')
  if (row === undefined) return renderUnknown(id, ending?.reason)
  if (row.state === 'unknown') return renderUnknown(id, undefined)
  if (isBinned) return renderUnknown(id, 'deleted')
  return isOver ? renderUnknown(id, 'expired') : renderStatus(id, row, now)
}

/**
 * Returns the status after its next change, or after `waitMs` at the latest.
 * @throws ServiceError `rate_limit_exceeded`, because a waiting request counts as a stream.
 */
async function awaitStatus(
  { context, signal }: Call<Dependencies, ArtifactCaller, ArtifactStatusQuery>,
  id: string,
  waitMs: number,
): Promise<ArtifactStatus> {
  const { deps, caller } = context
  const enough = AbortSignal.any([signal, AbortSignal.timeout(waitMs)])
  const statuses = watchWithinLimit({ context, signal: enough }, id)
  try {
    const { value: first } = await statuses.next()
    const { value: second } = await statuses.next()
    return second ?? first ?? (await readStatus(deps, caller, id))
  } finally {
    await statuses.return()
  }
}

/**
 * Yields the current status and each change until the signal aborts or the maximum stream duration passes.
 * @throws ServiceError `invalid_api_key` when the key is revoked or the token expires.
 */
async function* watchStatus(
  deps: WatchDeps,
  caller: ArtifactCaller,
  id: string,
  signal: AbortSignal,
): AsyncGenerator<ArtifactStatus, void, void> {
  const { clock, artifacts, config } = deps
  const endsAtMs = clock.monotonic() + config.timings.streamMaxMs
  let changed = new AbortController()
  const stopListening = artifacts.changes.subscribe(id, () => changed.abort())
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
      } else {
        const pause = AbortSignal.any([signal, changed.signal])
        await wait(text === last.text ? POLL_EVERY_MS : pauseMs, undefined, { signal: pause }).catch(() => {})
        changed = new AbortController()
      }
    }
  } finally {
    stopListening()
  }
}

async function assertStillGood({ keys, clock }: WatchDeps, caller: ArtifactCaller): Promise<void> {
  const hasExpired = caller.kind === 'token' && caller.expiresAt <= unixSeconds(clock)
  if (hasExpired || !(await keys.isLive(caller.tenantId)))
    throw new ServiceError('invalid_api_key', 'The key or token is no longer valid.')
}

export function answerStatus(
  call: Call<Dependencies, ArtifactCaller, ArtifactStatusQuery>,
): EventStream | Promise<ArtifactStatus> {
  const { context, input } = call
  const { deps, caller } = context
  const { artifact_id: id } = input
  if (call.wantsEvents) return new EventStream(encode(watchWithinLimit(call, id)), renderFailureEvent)
  const waitSeconds = readWaitSeconds(input.prefer)
  if (waitSeconds === undefined) return readStatus(deps, caller, id)
  context.setHeader('Preference-Applied', `wait=${waitSeconds}`)
  return awaitStatus(call, id, waitSeconds * 1000)
}

/**
 * Watches an artifact's status within the caller's limit on open streams.
 * @throws ServiceError `rate_limit_exceeded`
 */
export async function* watchWithinLimit(
  { context, signal }: Pick<Call<Dependencies, ArtifactCaller, unknown>, 'context' | 'signal'>,
  id: string,
): AsyncGenerator<ArtifactStatus, void, void> {
  const release = await context.deps.shared.streams.acquire(streamQuotas(context))
  try {
    yield* watchStatus(context.deps, context.caller, id, signal)
  } finally {
    await release()
  }
}

/** Limits token callers per artifact and client address, because a token may be published on a web page. */
function streamQuotas({ deps, caller, metadata }: CallContext<ArtifactCaller, Dependencies>): StreamQuota[] {
  const { streams } = deps.config.limits
  if (caller.kind === 'parent') {
    const limit = lowerLimit(streams.parent, caller.ownLimits?.streams)
    return [{ key: `watch:${caller.tenantId}`, limit }]
  }
  const key = `watch:${caller.artifactId}:${addressGroup(metadata.clientAddress)}`
  return [{ key, limit: streams.address }]
}

async function* encode(statuses: AsyncIterable<ArtifactStatus>): AsyncGenerator<Uint8Array, void, void> {
  for await (const status of statuses) yield Buffer.from(`data: ${JSON.stringify(status)}\n\n`)
}

function renderFailureEvent({ message }: ServiceError): Uint8Array {
  return Buffer.from(`event: error\ndata: ${JSON.stringify({ ok: false, error: message })}\n\n`)
}

/** Returns N from `Prefer: wait=N` (RFC 7240), capped at `MAX_WAIT_SECONDS`; undefined if it is absent. */
function readWaitSeconds(header: string | undefined): number | undefined {
  const [, digits] = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:[,;]|$)/i.exec(header ?? '') ?? []
  return digits === undefined ? undefined : Math.min(Number(digits), MAX_WAIT_SECONDS)
}
