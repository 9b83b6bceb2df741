/** Writes usage records in batches, independently of requests. */
import type { Dependencies } from './dependencies.ts'
import { addDay, createCallWriter, sumByDay, type UsageCallRow } from './store.ts'

/** Maximum time between flushes; `FLUSH_AT` waiting calls trigger an earlier one. */
const FLUSH_EVERY_MS = 1_000
const FLUSH_AT = 500
/** Maximum number of calls per transaction. */
const BATCH = 1_000
/**
 * Maximum number of calls held in memory while the database is not writable. Further calls are lost, and
 * their number is logged.
 */
const MOST_WAITING = 100_000

/** Writes calls in batches, usually within a second, independently of requests. */
export function createUsageRecorder({ db, log }: Pick<Dependencies, 'db' | 'log'>) {
  const insertCalls = createCallWriter(db)
  let waiting: UsageCallRow[] = []
  let lost = 0
  let timer: NodeJS.Timeout | undefined
  let flushing: Promise<void> | undefined

  async function write(calls: readonly UsageCallRow[]): Promise<void> {
    await db.transaction().execute(async (trx) => {
      await insertCalls(trx, calls)
      for (const sums of sumByDay(calls)) await addDay(trx, sums)
    })
  }

  async function writeAll(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    while (waiting.length > 0) {
      const batch = waiting.slice(0, BATCH)
      waiting = waiting.slice(BATCH)
      try {
        await write(batch)
      } catch (error) {
        waiting = [...batch, ...waiting]
        throw error
      }
    }
    if (lost > 0) log.error({ calls: lost }, 'usage records lost: too many waiting calls')
    lost = 0
  }

  /**
   * Writes every call recorded so far. @throws the database's error; the calls are kept and written later.
   */
  async function flush(): Promise<void> {
    flushing ??= writeAll().finally(() => {
      flushing = undefined
    })
    return flushing
  }

  async function flushOrRetry(): Promise<void> {
    await flush().catch((error) => {
      log.warn({ err: error, waiting: waiting.length }, 'could not write usage; will retry')
      timer ??= startTimer()
    })
  }

  function startTimer(): NodeJS.Timeout {
    return setTimeout(() => void flushOrRetry(), FLUSH_EVERY_MS).unref()
  }

  return {
    record(call: UsageCallRow): void {
      if (waiting.length >= MOST_WAITING) {
        lost += 1
        return
      }
      waiting.push(call)
      timer ??= startTimer()
      if (waiting.length === FLUSH_AT) void flushOrRetry()
    },
    flush,
  }
}
