/** The books of a running service: opens a booking for every call, holds back its tokens, and keeps what it came to. */

import { newId } from '../keys/format.ts'
import { Booking, type CallStart } from './booking.ts'
import { createBudgetKeeper } from './budget-keeper.ts'
import type { Dependencies } from './dependencies.ts'
import { estimateCallTokens } from './estimate.ts'
import { createUsageRecorder } from './recorder.ts'
import type { UsageCallRow } from './writer.ts'

/** Calls cut off at the end of the service get so long to say what they used. */
const LAST_BOOKINGS_MS = 1_000
/** Until the year 33658. */
const TIME_DIGITS = 15

export interface UsageBooks {
  /**
   * Opens the booking of a call.
   * @throws ServiceError `insufficient_quota` when a budget that bounds the caller is spent.
   */
  begin(call: CallStart): Promise<Booking>
  /** Resolves when every call booked so far is in the database. */
  flush(): Promise<void>
  /** Forgets which budgets there are: called after every change to them. */
  forget(): void
  /** Waits for the calls that are ending, and writes everything down. */
  close(): Promise<void>
}

type BooksDeps = Pick<Dependencies, 'config' | 'db' | 'clock' | 'random' | 'log' | 'metrics'>

/** Books over one database. */
export function createUsageBooks(deps: BooksDeps): UsageBooks {
  const { clock, log, metrics } = deps
  const recorder = createUsageRecorder(deps)
  const keeper = createBudgetKeeper(deps)
  const nextId = createCallIds(newId('', 6, deps.random))
  let open = 0
  let onLastEnd: (() => void) | undefined

  async function begin(call: CallStart): Promise<Booking> {
    const reservation = await keeper.reserve(call, () => estimateCallTokens(call.request))
    open += 1

    function book(row: UsageCallRow): Promise<void> | void {
      recorder.record(row)
      open -= 1
      if (open === 0) onLastEnd?.()
      // What is not settled expires; the answer must not fail for it.
      return reservation
        ?.settle(row.prompt_tokens + row.completion_tokens)
        .catch((error) =>
          log.warn({ err: error, requestId: row.request_id }, 'a budget could not be settled'),
        )
    }
    return new Booking(call, { clock, metrics, newId: nextId, book })
  }

  async function openCallsEnd(): Promise<void> {
    if (open === 0) return
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      onLastEnd = resolve
      timer = setTimeout(resolve, LAST_BOOKINGS_MS)
    })
    clearTimeout(timer)
  }

  return {
    begin,
    flush: () => recorder.flush(),
    forget: () => keeper.forget(),
    async close() {
      await openCallsEnd()
      await recorder.flush().catch((error) => log.error({ err: error }, 'the last usage was not written'))
    },
  }
}

/** Ids that sort by when their call began, and never repeat, also between processes of different names. */
export function createCallIds(processName: string): (startedAtMs: number) => string {
  let last = 0
  return (startedAtMs) => {
    last += 1
    return `${callIdsFrom(startedAtMs)}-${processName}-${last.toString(36)}`
  }
}

/** Sorts before the ids of all calls that begin at that moment or later. */
export function callIdsFrom(ms: number): string {
  return String(Math.floor(ms)).padStart(TIME_DIGITS, '0')
}
