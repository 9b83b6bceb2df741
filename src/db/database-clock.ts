/**
 * Implements a clock that follows PostgreSQL's time, so that replicas agree on when keys, leases and files
 * expire.
 */
import { sql } from 'kysely'
import type { Logger } from 'pino'
import type { Clock } from '../lib/clock.ts'
import type { Database } from './database.ts'

const COMPARE_EVERY_MS = 30_000
/** A smaller difference is ignored, because a slow query can cause it. */
const TOLERANCE_MS = 1_000

export interface DatabaseClock extends Clock {
  /** Synchronizes with the database. The clock keeps running if that fails. */
  compare(): Promise<void>
  stop(): void
}

/** Between comparisons, uses the local monotonic clock, so that setting the machine's time has no effect. */
export async function startDatabaseClock(
  db: Database,
  local: Clock,
  log: Pick<Logger, 'warn'>,
): Promise<DatabaseClock> {
  let anchor = await readTime()
  const now = () => anchor.wallMs + local.monotonic() - anchor.monotonicMs

  async function readTime() {
    const before = local.monotonic()
    const query = sql<{ ms: number }>`select extract(epoch from clock_timestamp()) * 1000 as ms`
    const { rows } = await query.execute(db)
    return { wallMs: Number(rows[0]?.ms), monotonicMs: (before + local.monotonic()) / 2 }
  }

  async function compare(): Promise<void> {
    const read = await readTime()
    const differenceMs = read.wallMs - (anchor.wallMs + read.monotonicMs - anchor.monotonicMs)
    if (Math.abs(differenceMs) > TOLERANCE_MS) anchor = read
  }

  const timer = setInterval(() => {
    compare().catch((error) => log.warn({ err: error }, 'failed to read the database clock'))
  }, COMPARE_EVERY_MS).unref()
  const differenceMs = Math.round(local.now() - now())
  if (Math.abs(differenceMs) > TOLERANCE_MS)
    log.warn(
      { differenceMs },
      "this machine's clock differs from the database clock; using the database clock",
    )
  return {
    now,
    monotonic: () => local.monotonic(),
    wait: (ms, signal) => local.wait(ms, signal),
    compare,
    stop: () => clearInterval(timer),
  }
}
