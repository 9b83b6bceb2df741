/** Fills a database with the token budgets of earlier versions, and reads what their migration creates. */
import type { Kysely, Migration } from 'kysely'
import { migrations } from '../../src/db/migrations/index.ts'
import type { Tables } from '../../src/db/tables.ts'

/** The migrations before the one that replaces the token budgets. */
export const oldMigrations: Record<string, Migration> = Object.fromEntries(
  Object.entries(migrations).filter(([name]) => name < '0031'),
)

interface OldTables {
  parent_keys: { id: string; name: string; hint: string; created_at: number }
  agents: object
  budgets: { owner_kind: string; owner_id: string; period: string; token_limit: number }
  budget_counters: {
    owner_kind: string
    owner_id: string
    period: string
    starts_on: string
    used: number
    reserved: number
  }
  budget_reservations: object
}

/** Inserts a key's and an agent's budgets, the budget of a deleted agent, and a running call. */
export async function insertOldBudgets(db: Kysely<Tables>): Promise<void> {
  const old = db as unknown as Kysely<OldTables>
  await old
    .insertInto('parent_keys')
    .values({ id: 'tenant', name: 'test', hint: 'svc_…0000', created_at: 1 })
    .execute()
  const times = { created_at: 1, updated_at: 1, position: 1 }
  const agent = {
    id: 'agent-1',
    parent_key_id: 'tenant',
    version: 1,
    name: 'a',
    source: '',
    format: 'yaml',
    key_id: 'k',
    key_sealed: '',
    key_hint: '',
  }
  await db
    .insertInto('agents')
    .values({ ...agent, ...times } as never)
    .execute()
  const ofKey = { owner_kind: 'parent', owner_id: 'tenant' }
  const ofAgent = { owner_kind: 'agent', owner_id: 'agent-1' }
  await old
    .insertInto('budgets')
    .values([
      { ...ofKey, period: 'day', token_limit: 1_000 },
      { ...ofKey, period: 'month', token_limit: 9_000 },
      { ...ofAgent, period: 'day', token_limit: 500 },
      { owner_kind: 'agent', owner_id: 'deleted', period: 'day', token_limit: 1 },
    ])
    .execute()
  await old
    .insertInto('budget_counters')
    .values([
      { ...ofKey, period: 'day', starts_on: '2026-12-31', used: 40, reserved: 60 },
      { ...ofKey, period: 'month', starts_on: '2026-12-01', used: 700, reserved: 60 },
      { ...ofAgent, period: 'day', starts_on: '2026-12-31', used: 5, reserved: 0 },
    ])
    .execute()
}

/** The rows that the migrated database must contain. */
export const migratedBudgets = [
  toRow('agent', 'agent-1', 'day', 500, 'tenant', { booked: 5, from: '2026-12-31', to: '2027-01-01' }),
  toRow('key', 'tenant', 'day', 1_000, 'operator', { booked: 100, from: '2026-12-31', to: '2027-01-01' }),
  toRow('key', 'tenant', 'month', 9_000, 'operator', { booked: 760, from: '2026-12-01', to: '2027-01-01' }),
]

function toRow(
  scope_kind: string,
  scope_id: string,
  period: string,
  amount: number,
  managed_by: string,
  { booked, from, to }: { booked: number; from: string; to: string },
) {
  const starts = { starts_at: Date.parse(from) / 1000, ends_at: Date.parse(to) / 1000 }
  const budget = { parent_key_id: 'tenant', scope_kind, scope_id, unit: 'tokens', period, amount, managed_by }
  return { ...budget, mode: 'enforce', ...starts, booked, reserved: 0 }
}

export function listMigratedBudgets(db: Kysely<Tables>) {
  return db
    .selectFrom('budgets')
    .innerJoin('budget_counters', 'budget_counters.budget_id', 'budgets.id')
    .select(['parent_key_id', 'scope_kind', 'scope_id', 'unit', 'period', 'amount', 'managed_by'])
    .select(['mode', 'starts_at', 'ends_at', 'booked', 'reserved'])
    .orderBy('scope_kind')
    .orderBy('period')
    .execute()
}
