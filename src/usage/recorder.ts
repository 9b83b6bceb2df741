/** Writes calls down in batches, off the request path: a call costs one push, and a second later it is in the database. */

import type { CompiledQuery } from 'kysely'
import type { Database } from '../db/database.ts'
import { dayOf } from './days.ts'
import type { Dependencies } from './dependencies.ts'
import { count, type Histogram, merge, parseHistogram, renderHistogram } from './histogram.ts'
import type { UsageCallRow, UsageDayRow } from './store.ts'

/** Calls wait at most so long, unless so many wait. */
const FLUSH_EVERY_MS = 1_000
const FLUSH_AT = 200
/** Calls of one transaction. */
const BATCH = 1_000
const DAY_SECONDS = 86_400
/** Calls kept while the database cannot be written; beyond that new ones are lost, and the log says how many. */
const MOST_WAITING = 100_000

export interface UsageRecorder {
  /** Takes a call; it is written soon. */
  record(call: UsageCallRow): void
  /**
   * Resolves when everything recorded so far is in the database.
   * @throws the database's error; the calls then stay, and are tried again.
   */
  flush(): Promise<void>
}

/** A recorder over one database. */
export function createUsageRecorder({ db, log }: Pick<Dependencies, 'db' | 'log'>): UsageRecorder {
  const writer = createUsageWriter(db)
  let waiting: UsageCallRow[] = []
  let lost = 0
  let timer: NodeJS.Timeout | undefined
  let flushing: Promise<void> | undefined

  async function write(calls: readonly UsageCallRow[]): Promise<void> {
    await db.transaction().execute(async (trx) => {
      await writer.insertCalls(trx, calls)
      for (const sums of sumByDay(calls)) await addDay(writer, trx, toDayRow(sums), sums)
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
    record(call) {
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

/** Adds sums to the row of their day, durations included; the histograms in `sums` itself are not looked at. */
export async function addDay(
  writer: UsageWriter,
  trx: Dependencies['db'],
  sums: UsageDayRow,
  durations: DayDurations,
): Promise<void> {
  const before = await writer.addToDay(trx, { ...sums, latency_histogram: '{}', first_byte_histogram: '{}' })
  const histograms = {
    latency_histogram: sumHistograms(before.latency_histogram, durations.latency),
    first_byte_histogram: sumHistograms(before.first_byte_histogram, durations.firstByte),
  }
  await writer.updateHistograms(trx, sums, histograms)
}

function sumHistograms(before: string, more: Histogram): string {
  const sum = parseHistogram(before)
  merge(sum, more)
  return renderHistogram(sum)
}

/** How long the calls of a day took. */
export interface DayDurations {
  readonly latency: Histogram
  readonly firstByte: Histogram
}

/** What one row of daily sums grows by. */
interface DaySums extends DayDurations {
  readonly key: DayKey
  readonly calls: UsageCallRow[]
}

/** In one order for all, so that no two writers of the same rows wait for each other. */
function sumByDay(calls: readonly UsageCallRow[]): Iterable<DaySums> {
  const byKey = new Map<string, DaySums>()
  for (const call of calls) {
    const { parent_key_id, agent_id, model, provider, created_at } = call
    const name = [Math.floor(created_at / DAY_SECONDS), parent_key_id, agent_id, model, provider].join('\n')
    let sums = byKey.get(name)
    if (sums === undefined) {
      const key = { parent_key_id, day: dayOf(created_at * 1000), agent_id, model, provider }
      sums = { key, calls: [], latency: new Map(), firstByte: new Map() }
      byKey.set(name, sums)
    }
    sums.calls.push(call)
    count(sums.latency, call.latency_ms)
    if (call.first_byte_ms !== null) count(sums.firstByte, call.first_byte_ms)
  }
  return [...byKey].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, sums]) => sums)
}

function toDayRow({ key, calls }: DaySums): UsageDayRow {
  const sum = (numberOf: (call: UsageCallRow) => number) =>
    calls.reduce((total, call) => total + numberOf(call), 0)
  return {
    ...key,
    requests: calls.length,
    errors: sum(({ status }) => (isError(status) ? 1 : 0)),
    prompt_tokens: sum((call) => call.prompt_tokens),
    completion_tokens: sum((call) => call.completion_tokens),
    estimated: sum((call) => call.is_estimated),
    latency_histogram: '{}',
    first_byte_histogram: '{}',
  }
}

/** A caller who leaves has not met an error. */
function isError(status: string): boolean {
  return status !== 'ok' && status !== 'left'
}

/** Which row of daily sums. */
export type DayKey = Pick<UsageDayRow, (typeof dayKey)[number]>

/** What durations a row of daily sums tells of. */
export type DayHistograms = Pick<UsageDayRow, 'latency_histogram' | 'first_byte_histogram'>

/** Writes within the transaction it is given. */
export interface UsageWriter {
  /** Inserts rows of calls in few statements. */
  insertCalls(trx: Database, rows: readonly UsageCallRow[]): Promise<void>
  /** Adds the numbers of `sums` to their day's row, and answers with the histograms that stood there before. */
  addToDay(trx: Database, sums: UsageDayRow): Promise<DayHistograms>
  updateHistograms(trx: Database, key: DayKey, histograms: DayHistograms): Promise<void>
}

const callColumns = [
  'id',
  'request_id',
  'parent_key_id',
  'agent_id',
  'model',
  'provider',
  'status',
  'prompt_tokens',
  'completion_tokens',
  'is_estimated',
  'is_streamed',
  'latency_ms',
  'first_byte_ms',
  'created_at',
] as const satisfies readonly (keyof UsageCallRow)[]

const dayKey = ['parent_key_id', 'day', 'agent_id', 'model', 'provider'] as const

const daySums = ['requests', 'errors', 'prompt_tokens', 'completion_tokens', 'estimated'] as const

const dayHistograms = ['latency_histogram', 'first_byte_histogram'] as const

const dayColumns = [...dayKey, ...daySums, ...dayHistograms] as const

/** Rows of one statement, largest first: few different statements, which stay prepared too. */
const statementSizes = [64, 8, 1] as const

/** A writer for transactions of one database. */
export function createUsageWriter(db: Database): UsageWriter {
  const inserts = new Map(statementSizes.map((size) => [size, compileInsert(db, size)]))
  const addition = compileAddition(db)
  const update = compileUpdate(db)
  return {
    async insertCalls(trx, rows) {
      for (let at = 0; at < rows.length; ) {
        const size = statementSizes.find((candidate) => candidate <= rows.length - at) ?? 1
        const parameters: unknown[] = []
        for (let row = at; row < at + size; row++) {
          for (const column of callColumns) parameters.push((rows[row] as UsageCallRow)[column])
        }
        await trx.executeQuery({ ...(inserts.get(size) as CompiledQuery), parameters })
        at += size
      }
    },
    async addToDay(trx, sums) {
      const parameters = dayColumns.map((column) => sums[column])
      const { rows } = await trx.executeQuery<DayHistograms>({ ...addition, parameters })
      return rows[0] as DayHistograms
    },
    async updateHistograms(trx, key, histograms) {
      const values = dayHistograms.map((column) => histograms[column])
      const parameters = [...values, ...dayKey.map((column) => key[column])]
      await trx.executeQuery({ ...update, parameters })
    },
  }
}

/** Stands where a statement's own values will: only the shape of it is compiled. */
const anyCall = Object.fromEntries(callColumns.map((column) => [column, ''])) as unknown as UsageCallRow

const anyDay = Object.fromEntries(dayColumns.map((column) => [column, ''])) as unknown as UsageDayRow

function compileInsert(db: Database, size: number): CompiledQuery {
  const rows = Array.from({ length: size }, () => anyCall)
  return db.insertInto('usage_calls').values(rows).compile()
}

function compileAddition(db: Database): CompiledQuery<DayHistograms> {
  return db
    .insertInto('usage_days')
    .values(anyDay)
    .onConflict((conflict) =>
      conflict.columns(dayKey).doUpdateSet((row) => ({
        requests: row('usage_days.requests', '+', row.ref('excluded.requests')),
        errors: row('usage_days.errors', '+', row.ref('excluded.errors')),
        prompt_tokens: row('usage_days.prompt_tokens', '+', row.ref('excluded.prompt_tokens')),
        completion_tokens: row('usage_days.completion_tokens', '+', row.ref('excluded.completion_tokens')),
        estimated: row('usage_days.estimated', '+', row.ref('excluded.estimated')),
      })),
    )
    .returning(dayHistograms)
    .compile()
}

function compileUpdate(db: Database): CompiledQuery {
  let query = db.updateTable('usage_days').set({ latency_histogram: '', first_byte_histogram: '' })
  for (const column of dayKey) query = query.where(column, '=', '')
  return query.compile()
}
