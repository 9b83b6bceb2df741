/** Rows of calls and of their daily sums. */
import type { CompiledQuery, Insertable, Selectable } from 'kysely'
import type { UsageCallTable, UsageDayTable } from '../db/tables.ts'
import type { Database } from '../deps.ts'

export type UsageCallRow = Selectable<UsageCallTable>
export type UsageDayRow = Selectable<UsageDayTable>

const columns = [
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
] as const satisfies readonly (keyof UsageCallTable)[]

/** Rows of one statement, largest first: few different statements, which stay compiled and prepared. */
const statementSizes = [64, 8, 1] as const

/** Inserts rows of calls in few statements; meant for a transaction. */
export type InsertCalls = (db: Database, rows: readonly UsageCallRow[]) => Promise<void>

/** Compiling a statement of many rows costs as much as running it, so each size is compiled once. */
export function createInsertCalls(db: Database): InsertCalls {
  const compiled = new Map<number, CompiledQuery>()

  function statementOf(size: number, rows: readonly UsageCallRow[]): CompiledQuery {
    let statement = compiled.get(size)
    if (statement === undefined) {
      // The rows themselves only tell the shape; no value of theirs becomes part of the text.
      statement = db.insertInto('usage_calls').columns(columns).values(rows.slice(0, size)).compile()
      compiled.set(size, statement)
    }
    return statement
  }

  return async (trx, rows) => {
    for (let at = 0; at < rows.length; ) {
      const size = statementSizes.find((candidate) => candidate <= rows.length - at) ?? 1
      const parameters: unknown[] = []
      for (let row = at; row < at + size; row++) {
        for (const column of columns) parameters.push((rows[row] as UsageCallRow)[column])
      }
      await trx.executeQuery({ ...statementOf(size, rows), parameters })
      at += size
    }
  }
}

/** Adds the numbers of `sums` to their day's row, and answers with the histograms that stood there before. */
export async function addToDay(
  db: Database,
  sums: Insertable<UsageDayTable>,
): Promise<Pick<UsageDayRow, 'latency_histogram' | 'first_byte_histogram'>> {
  return db
    .insertInto('usage_days')
    .values(sums)
    .onConflict((conflict) =>
      conflict.columns(['parent_key_id', 'day', 'agent_id', 'model', 'provider']).doUpdateSet((row) => ({
        requests: row('usage_days.requests', '+', row.ref('excluded.requests')),
        errors: row('usage_days.errors', '+', row.ref('excluded.errors')),
        prompt_tokens: row('usage_days.prompt_tokens', '+', row.ref('excluded.prompt_tokens')),
        completion_tokens: row('usage_days.completion_tokens', '+', row.ref('excluded.completion_tokens')),
        estimated: row('usage_days.estimated', '+', row.ref('excluded.estimated')),
      })),
    )
    .returning(['latency_histogram', 'first_byte_histogram'])
    .executeTakeFirstOrThrow()
}

/** Which row of daily sums. */
export type DayKey = Pick<UsageDayRow, 'parent_key_id' | 'day' | 'agent_id' | 'model' | 'provider'>

export async function updateHistograms(
  db: Database,
  key: DayKey,
  histograms: Pick<UsageDayRow, 'latency_histogram' | 'first_byte_histogram'>,
): Promise<void> {
  await db
    .updateTable('usage_days')
    .set(histograms)
    .where('parent_key_id', '=', key.parent_key_id)
    .where('day', '=', key.day)
    .where('agent_id', '=', key.agent_id)
    .where('model', '=', key.model)
    .where('provider', '=', key.provider)
    .execute()
}

/** The tenant's daily sums from one day to another, both included, oldest first. */
export async function listDays(
  db: Database,
  tenantId: string,
  from: string,
  to: string,
): Promise<UsageDayRow[]> {
  return db
    .selectFrom('usage_days')
    .selectAll()
    .where('parent_key_id', '=', tenantId)
    .where('day', '>=', from)
    .where('day', '<=', to)
    .orderBy('day')
    .execute()
}

/** Tokens of a parent key, or of one agent, since a day. */
export async function sumTokensSince(
  db: Database,
  owner: { readonly kind: 'parent' | 'agent'; readonly id: string },
  tenantId: string,
  day: string,
): Promise<number> {
  let query = db
    .selectFrom('usage_days')
    .select(({ fn }) => [
      fn.sum<number>('prompt_tokens').as('asked'),
      fn.sum<number>('completion_tokens').as('said'),
    ])
    .where('parent_key_id', '=', tenantId)
    .where('day', '>=', day)
  if (owner.kind === 'agent') query = query.where('agent_id', '=', owner.id)
  const { asked, said } = await query.executeTakeFirstOrThrow()
  return Number(asked ?? 0) + Number(said ?? 0)
}

/** Deletes the oldest calls with an id before that one, so many at most; answers how many there were. */
export async function deleteCallsBefore(db: Database, id: string, limit: number): Promise<number> {
  const result = await db
    .deleteFrom('usage_calls')
    .where('id', 'in', (query) =>
      query.selectFrom('usage_calls').select('id').where('id', '<', id).orderBy('id').limit(limit),
    )
    .executeTakeFirst()
  return Number(result.numDeletedRows)
}
