/** Writes calls to the database in batches, outside of requests, within about a second. */

import type { CompiledQuery } from 'kysely'
import type { Database } from '../db/database.ts'
import { dayOf } from './days.ts'
import type { Dependencies } from './dependencies.ts'
import { histogramOf, merge, parseHistogram, renderHistogram } from './histogram.ts'
import type { UsageCallRow, UsageDayRow } from './store.ts'

/** The longest time before a flush, unless `FLUSH_AT` calls wait. */
const FLUSH_EVERY_MS = 1_000
const FLUSH_AT = 200
/** Calls in one transaction. */
const BATCH = 1_000
const DAY_SECONDS = 86_400
/** Calls kept while the database cannot be written. Later ones are lost, and their number is logged. */
const MOST_WAITING = 100_000

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
    if (lost > 0) log.error({ calls: lost }, 'calls are missing from the record of usage')
    lost = 0
  }

  /** Writes every call recorded so far. @throws the database's error; the calls are kept and written later. */
  async function flush(): Promise<void> {
    flushing ??= writeAll().finally(() => {
      flushing = undefined
    })
    return flushing
  }

  async function flushOrRetry(): Promise<void> {
    await flush().catch((error) => {
      log.warn({ err: error, waiting: waiting.length }, 'usage could not be written; it is tried again')
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

const dayKey = ['parent_key_id', 'day', 'agent_id', 'model', 'provider'] as const

export async function addDay(trx: Database, sums: UsageDayRow): Promise<void> {
  const before = await trx
    .insertInto('usage_days')
    .values({ ...sums, latency_histogram: '{}', first_byte_histogram: '{}' })
    .onConflict((conflict) =>
      conflict.columns(dayKey).doUpdateSet((row) => ({
        requests: row('usage_days.requests', '+', row.ref('excluded.requests')),
        errors: row('usage_days.errors', '+', row.ref('excluded.errors')),
        prompt_tokens: row('usage_days.prompt_tokens', '+', row.ref('excluded.prompt_tokens')),
        completion_tokens: row('usage_days.completion_tokens', '+', row.ref('excluded.completion_tokens')),
        estimated: row('usage_days.estimated', '+', row.ref('excluded.estimated')),
      })),
    )
    .returning(['latency_histogram', 'first_byte_histogram'])
    .executeTakeFirstOrThrow()
  const { parent_key_id, day, agent_id, model, provider } = sums
  await trx
    .updateTable('usage_days')
    .set({
      latency_histogram: sumHistograms(before.latency_histogram, sums.latency_histogram),
      first_byte_histogram: sumHistograms(before.first_byte_histogram, sums.first_byte_histogram),
    })
    .where(({ and }) => and({ parent_key_id, day, agent_id, model, provider }))
    .execute()
}

function sumHistograms(before: string, more: string): string {
  const sum = parseHistogram(before)
  merge(sum, parseHistogram(more))
  return renderHistogram(sum)
}

/** What the calls add to each row of daily sums, in one order for all writers, which prevents deadlocks. */
function sumByDay(calls: readonly UsageCallRow[]): UsageDayRow[] {
  const byDay = Map.groupBy(calls, ({ parent_key_id, agent_id, model, provider, created_at }) =>
    [Math.floor(created_at / DAY_SECONDS), parent_key_id, agent_id, model, provider].join('\n'),
  )
  const sorted = [...byDay].toSorted(([one], [other]) => (one < other ? -1 : 1))
  return sorted.map(([, [first, ...others]]) => sumCalls(first as UsageCallRow, others))
}

function sumCalls(first: UsageCallRow, others: readonly UsageCallRow[]): UsageDayRow {
  const { parent_key_id, agent_id, model, provider, created_at } = first
  const calls = [first, ...others]
  const sum = (numberOf: (call: UsageCallRow) => number) =>
    calls.reduce((total, call) => total + numberOf(call), 0)
  const firstBytes = calls.map((call) => call.first_byte_ms).filter((ms) => ms !== null)
  return {
    ...{ parent_key_id, day: dayOf(created_at * 1000), agent_id, model, provider },
    requests: calls.length,
    // A client that disconnects is not an error.
    errors: sum(({ status }) => (status === 'ok' || status === 'left' ? 0 : 1)),
    prompt_tokens: sum((call) => call.prompt_tokens),
    completion_tokens: sum((call) => call.completion_tokens),
    estimated: sum((call) => call.is_estimated),
    latency_histogram: renderHistogram(histogramOf(calls.map((call) => call.latency_ms))),
    first_byte_histogram: renderHistogram(histogramOf(firstBytes)),
  }
}

/** The shape of a row, which a statement is compiled from. */
const anyCall: UsageCallRow = {
  id: '',
  request_id: '',
  parent_key_id: '',
  agent_id: '',
  model: '',
  provider: '',
  status: '',
  prompt_tokens: 0,
  completion_tokens: 0,
  is_estimated: 0,
  is_streamed: 0,
  latency_ms: 0,
  first_byte_ms: 0,
  created_at: 0,
}
const callColumns = Object.keys(anyCall) as (keyof UsageCallRow)[]

/** Rows in one statement, largest first: few different statements, which the driver keeps prepared. */
const statementSizes = [64, 8, 1] as const

/** Compiles the inserts once, because building one for each call would be noticeable in the CPU time of a chat. */
function createCallWriter(db: Database) {
  const inserts = new Map(statementSizes.map((size) => [size, compileInsert(db, size)]))
  return async (trx: Database, rows: readonly UsageCallRow[]): Promise<void> => {
    for (let at = 0; at < rows.length; ) {
      const size = statementSizes.find((candidate) => candidate <= rows.length - at) ?? 1
      const parameters = rows.slice(at, at + size).flatMap((row) => callColumns.map((column) => row[column]))
      await trx.executeQuery({ ...(inserts.get(size) as CompiledQuery), parameters })
      at += size
    }
  }
}

function compileInsert(db: Database, size: number): CompiledQuery {
  const rows = Array.from({ length: size }, () => anyCall)
  return db.insertInto('usage_calls').values(rows).compile()
}
