/**
 * Replaces the token budgets of keys and agents with budgets that have a scope, a unit and a period. Keeps
 * existing budgets and their usage, and counts the reservations of running calls as spent.
 */
import { randomBytes } from 'node:crypto'
import { type Kysely, sql } from 'kysely'

/** Rows per insert. */
const BATCH = 500

interface OldBudget {
  owner_kind: 'parent' | 'agent'
  owner_id: string
  period: 'day' | 'month'
  token_limit: number
  /** Null if the agent was deleted. */
  tenant: string | null
}

interface OldCounter {
  owner_kind: string
  owner_id: string
  period: 'day' | 'month'
  starts_on: string
  booked: number
}

export async function up(db: Kysely<unknown>): Promise<void> {
  const { rows: budgets } = await sql<OldBudget>`
    select budgets.*, case owner_kind when 'parent' then owner_id else agents.parent_key_id end as tenant
    from budgets left join agents on agents.id = budgets.owner_id`.execute(db)
  const { rows: counters } = await sql<OldCounter>`
    select owner_kind, owner_id, period, starts_on, used + reserved as booked from budget_counters`.execute(
    db,
  )
  for (const table of ['budget_reservations', 'budget_counters', 'budgets'])
    await db.schema.dropTable(table).execute()
  await createBudgets(db)
  await createSpending(db)
  const now = Math.floor(Date.parse(await readNow(db)) / 1000)
  const target = db as Kysely<NewTables>
  const countersOf = Map.groupBy(counters, nameOf)
  for (const budget of budgets) {
    if (budget.tenant === null) continue
    const id = `bud_${randomBytes(12).toString('hex')}`
    await target
      .insertInto('budgets')
      .values(toBudget(id, budget, budget.tenant, now))
      .execute()
    const rows = (countersOf.get(nameOf(budget)) ?? []).map((counter) => toCounter(id, counter))
    for (let at = 0; at < rows.length; at += BATCH)
      await target
        .insertInto('budget_counters')
        .values(rows.slice(at, at + BATCH))
        .execute()
  }
}

interface NewTables {
  budgets: ReturnType<typeof toBudget>
  budget_counters: ReturnType<typeof toCounter>
}

function nameOf({ owner_kind, owner_id, period }: OldBudget | OldCounter): string {
  return `${owner_kind} ${period} ${owner_id}`
}

async function readNow(db: Kysely<unknown>): Promise<string> {
  const { rows } = await sql<{ now: string }>`select cast(current_timestamp as varchar(19)) as now`.execute(
    db,
  )
  return `${(rows[0] as { now: string }).now.replace(' ', 'T')}Z`
}

function toBudget(
  id: string,
  { owner_kind, owner_id, period, token_limit }: OldBudget,
  parent_key_id: string,
  created_at: number,
) {
  const isOfKey = owner_kind === 'parent'
  const scope = { scope_kind: isOfKey ? 'key' : 'agent', scope_id: owner_id }
  const limit = { unit: 'tokens', period, amount: token_limit, mode: 'enforce' }
  // Only administrators could set the budget of a key.
  return { id, parent_key_id, ...scope, ...limit, managed_by: isOfKey ? 'operator' : 'tenant', created_at }
}

function toCounter(budget_id: string, { period, starts_on, booked }: OldCounter) {
  const [starts_at, ends_at] = toPeriod(period, starts_on)
  return { budget_id, subject: '', starts_at, ends_at, booked, reserved: 0, refused: 0 }
}

/** Returns the Unix seconds of the start and the end of a period in UTC. */
function toPeriod(period: OldBudget['period'], startsOn: string): readonly [number, number] {
  const end = new Date(startsOn)
  if (period === 'day') end.setUTCDate(end.getUTCDate() + 1)
  else end.setUTCMonth(end.getUTCMonth() + 1)
  return [Date.parse(startsOn) / 1000, end.getTime() / 1000]
}

async function createBudgets(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('budgets')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('parent_key_id', 'text', (column) => column.notNull())
    .addColumn('scope_kind', 'text', (column) => column.notNull())
    .addColumn('scope_id', 'text', (column) => column.notNull())
    .addColumn('unit', 'text', (column) => column.notNull())
    .addColumn('period', 'text', (column) => column.notNull())
    .addColumn('amount', 'bigint', (column) => column.notNull())
    .addColumn('mode', 'text', (column) => column.notNull())
    .addColumn('managed_by', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addUniqueConstraint('budgets_by_scope', ['scope_kind', 'scope_id', 'unit', 'period'])
    .execute()
  await db.schema
    .createIndex('budgets_by_key')
    .on('budgets')
    .columns(['parent_key_id', 'created_at', 'id'])
    .execute()
}

async function createSpending(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('budget_counters')
    .addColumn('budget_id', 'text', (column) => column.notNull().references('budgets.id').onDelete('cascade'))
    .addColumn('subject', 'text', (column) => column.notNull())
    .addColumn('starts_at', 'bigint', (column) => column.notNull())
    .addColumn('ends_at', 'bigint')
    .addColumn('booked', 'bigint', (column) => column.notNull())
    .addColumn('reserved', 'bigint', (column) => column.notNull())
    .addColumn('refused', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('budget_counters_key', ['budget_id', 'subject', 'starts_at'])
    .execute()
  await db.schema.createIndex('budget_counters_by_end').on('budget_counters').column('ends_at').execute()
  await db.schema
    .createTable('budget_reservations')
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('budget_id', 'text', (column) => column.notNull().references('budgets.id').onDelete('cascade'))
    .addColumn('subject', 'text', (column) => column.notNull())
    .addColumn('starts_at', 'bigint', (column) => column.notNull())
    .addColumn('amount', 'bigint', (column) => column.notNull())
    .addColumn('process_id', 'text', (column) => column.notNull())
    .addColumn('expires_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('budget_reservations_key', ['id', 'budget_id'])
    .execute()
  for (const column of ['expires_at', 'process_id', 'budget_id'])
    await db.schema
      .createIndex(`budget_reservations_by_${column}`)
      .on('budget_reservations')
      .column(column)
      .execute()
  await db.schema
    .createTable('budget_entries')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('budget_id', 'text', (column) => column.notNull().references('budgets.id').onDelete('cascade'))
    .addColumn('subject', 'text', (column) => column.notNull())
    .addColumn('starts_at', 'bigint', (column) => column.notNull())
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('amount', 'bigint', (column) => column.notNull())
    .addColumn('reason', 'text', (column) => column.notNull())
    .addColumn('actor', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint')
    .execute()
  await db.schema.createIndex('budget_entries_by_budget').on('budget_entries').column('budget_id').execute()
}
