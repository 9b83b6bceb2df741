/** Inserts rows for tests of `parley store copy`. */
import type { Kysely } from 'kysely'
import type { Tables } from '../../src/db/tables.ts'
import { insertLargeInstallation, rowNames } from './large-installation.ts'

const ROWS_AT_ONCE = 200
const CREATED_AT = 1_700_000_000

/** Inserts `count` rows into each large table, and a tenant for every 100 agents. */
export async function insertInstallation(db: Kysely<Tables>, count: number): Promise<void> {
  const tenants = Math.ceil(count / 100)
  await insertLargeInstallation(db, tenants, count)
  const tenantOf = (index: number) => rowNames.tenant(index % tenants)
  await db.transaction().execute(async (trx) => {
    await trx
      .insertInto('installation')
      .values({ only: 1, id: toUuid(0), created_at: CREATED_AT })
      .execute()
    await insertUser(trx, tenantOf(0))
    for (let from = 0; from < count; from += ROWS_AT_ONCE) {
      const size = Math.min(ROWS_AT_ONCE, count - from)
      const numbers = Array.from({ length: size }, (_, index) => from + index)
      const rows = numbers.map((index) => toRows(index, tenantOf(index)))
      await trx
        .insertInto('usage_calls')
        .values(rows.map(({ call }) => call))
        .execute()
      await trx
        .insertInto('artifacts')
        .values(rows.map(({ artifact }) => artifact))
        .execute()
      await trx
        .insertInto('agent_versions')
        .values(rows.map(({ version }) => version))
        .execute()
      await trx
        .insertInto('audit_events')
        .values(rows.map(({ event }) => event))
        .execute()
    }
    await insertProviders(trx)
    await insertPrices(trx)
    await insertMeters(trx)
    await insertJobs(trx, Math.min(count, 50))
  })
}

async function insertProviders(trx: Kysely<Tables>): Promise<void> {
  const row = { kind: 'gateway', revision: 'one', created_at: CREATED_AT, updated_at: CREATED_AT } as const
  await trx
    .insertInto('providers')
    .values([
      { ...row, name: 'far', base_url: 'https://api.example.org/v1', key_sealed: 'v1.x.y', key_hint: 'abcd' },
      { ...row, name: 'near', base_url: 'http://127.0.0.1:8000/v1', key_sealed: null, key_hint: null },
    ])
    .execute()
}

async function insertPrices(trx: Kysely<Tables>): Promise<void> {
  const row = { entry: '[{"per_million":{"input":"0.25"}}]', updated_by: 'ada@example.org' }
  await trx
    .insertInto('price_overrides')
    .values([
      { ...row, provider: 'far', model: 'meta/large', updated_at: CREATED_AT },
      { ...row, provider: 'near', model: 'small', updated_at: CREATED_AT },
    ])
    .execute()
}

async function insertMeters(trx: Kysely<Tables>): Promise<void> {
  const meter = { metering: 'bytes', reason: 'output', until: CREATED_AT + 86_400 } as const
  await trx
    .insertInto('model_meters')
    .values({ ...meter, provider: 'far', model: 'meta/large' })
    .execute()
}

/** Inserts a user and a parent key that refer to each other. */
async function insertUser(trx: Kysely<Tables>, tenant: string): Promise<void> {
  const times = { created_at: CREATED_AT, last_seen_at: CREATED_AT }
  const user = {
    id: 'user-1',
    email: 'ada@example.org',
    name: 'Ada',
    groups: '["staff"]',
    active_key_id: tenant,
  }
  await trx
    .insertInto('users')
    .values({ ...user, ...times })
    .execute()
  await trx.updateTable('parent_keys').set({ user_id: 'user-1' }).where('id', '=', tenant).execute()
}

async function insertJobs(trx: Kysely<Tables>, count: number): Promise<void> {
  const jobs = Array.from({ length: count }, (_, index) => ({
    kind: 'hook' as const,
    blob: toUuid(index),
    next_at: index,
  }))
  await trx.insertInto('jobs').values(jobs).execute()
}

/** Returns a UUID that ends with the number. */
function toUuid(index: number): string {
  return `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`
}

function toRows(index: number, tenant: string) {
  const created_at = CREATED_AT + index
  return {
    call: {
      id: `${1_700_000_000_000 + index}-call`,
      request_id: `request-${index}`,
      parent_key_id: tenant,
      agent_id: index % 3 === 0 ? '' : rowNames.agent(index),
      model: 'mock',
      provider: 'mock',
      status: 'ok',
      prompt_tokens: index,
      completion_tokens: 2 ** 45 + index,
      is_estimated: index % 2,
      is_streamed: 1,
      latency_ms: 12,
      first_byte_ms: index % 2 === 0 ? null : 3,
      created_at,
    },
    artifact: {
      id: toUuid(index),
      parent_key_id: tenant,
      segment: `segment-${index}`,
      state: 'uploading' as const,
      kind: 'video' as const,
      name: `Übung ${index} „\\n" 🎬\n\t'`,
      filename: 'clip.mp4',
      size_bytes: 3_000_000_000 + index,
      blob: toUuid(index),
      created_at,
    },
    version: {
      agent_id: rowNames.agent(index),
      version: 1,
      name: `Agent ${index}`,
      source: `name: Agent ${index}\r\ninstructions: "Grüße\\u0000"\n`,
      format: 'yaml' as const,
      created_at,
    },
    event: {
      id: `event-${String(index).padStart(9, '0')}`,
      created_at,
      actor_kind: 'parent_key' as const,
      actor: tenant,
      action: 'agent.create',
      target_kind: 'agent' as const,
      target_id: rowNames.agent(index),
      tenant,
      details: '{}',
    },
  }
}
