/** How an artifact is doing: asked for once, awaited, or watched. */

import { setTimeout as wait } from 'node:timers/promises'
import { ServiceError } from '../errors.ts'
import { unixSeconds } from '../lib/clock.ts'
import { type ArtifactCaller, assertFor, assertUse } from './access.ts'
import type { Dependencies } from './dependencies.ts'
import type { ArtifactDesk } from './desk.ts'
import { type ArtifactStatus, renderStatus } from './schema.ts'
import { type ArtifactViewRow, findViewRow } from './store.ts'

export type ArtifactView = ArtifactViewRow

type StatusDeps = Pick<Dependencies, 'db' | 'clock'>
type WatchDeps = StatusDeps & Pick<Dependencies, 'config' | 'keys'> & { readonly artifacts: ArtifactDesk }

/** Changes that other processes make are not announced here. */
const LOOK_EVERY_MS = 2_000
/** Progress is told at most four times a second. */
const PROGRESS_EVERY_MS = 250
/** Longest wait of `Prefer`. Decision: 9. */
export const MAX_WAIT_SECONDS = 30

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
