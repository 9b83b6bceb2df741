/** The statements usage is written with. Compiling one costs as much as running it, so each is compiled once. */
import type { CompiledQuery, Selectable } from 'kysely'
import type { Database } from '../db/database.ts'
import type { UsageCallTable, UsageDayTable } from '../db/tables.ts'

export type UsageCallRow = Selectable<UsageCallTable>
export type UsageDayRow = Selectable<UsageDayTable>

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
