/** Tests that frequent database queries use an index. */
import { type CompiledQuery, type Kysely, sql } from 'kysely'
import { expect, inject, onTestFinished, test, vi } from 'vitest'
import { findAgent, findAgentByKey, listAgentNames, listAgentRows } from '../../../src/agents/store.ts'
import { openDatabase } from '../../../src/db/open.ts'
import type { Tables } from '../../../src/db/tables.ts'
import { findCredential, findParentKey } from '../../../src/identity/key-store.ts'
import { addDays } from '../../../src/usage/days.ts'
import { listLastDays } from '../../../src/usage/store.ts'
import { insertLargeInstallation, rowNames } from '../../support/large-installation.ts'
import { createTestDatabase } from '../../support/postgres.ts'
import { explain, listStatements } from '../../support/query-plans.ts'

// Inserting many rows may take longer than the default timeout on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

const isPostgres = inject('database') === 'postgres'

async function openLargeDatabase(): Promise<Kysely<Tables>> {
  const databaseUrl = isPostgres ? await createTestDatabase() : undefined
  const { db, close } = await openDatabase({ dataDir: ':memory:', databaseUrl, role: 'server' })
  onTestFinished(close)
  await insertLargeInstallation(db, 1_000, 4_000)
  await sql`analyze`.execute(db)
  return db
}

test('queries for keys and agents use an index', async () => {
  const db = await openLargeDatabase()
  const [tenant, agent] = [rowNames.tenant(7), rowNames.agent(1_007)]
  const lookUps: Record<string, (on: Kysely<Tables>) => Promise<unknown>> = {
    credential: (on) => findCredential(on, rowNames.digest(1_007)),
    'parent key': (on) => findParentKey(on, tenant),
    agent: (on) => findAgent(on, tenant, agent),
    'agent by key': (on) => findAgentByKey(on, '000000001007'),
    'agents of a key': (on) => listAgentRows(on, tenant, { by: 'created', order: 'desc' }),
    'page of them': (on) => listAgentRows(on, tenant, { by: 'created', order: 'desc', limit: 10 }),
    'names of them': (on) => listAgentNames(on, tenant),
  }
  for (const [what, lookUp] of Object.entries(lookUps)) {
    const statements = await listStatements(lookUp)
    expect(statements, what).toHaveLength(1)
    const plan = await explain(db, statements[0] as CompiledQuery)
    expect(plan, what).toMatch(isPostgres ? /Index/ : /USING .*INDEX/)
    expect(plan, what).not.toMatch(isPostgres ? /Seq Scan/ : /SCAN/)
  }
})

test("the query for each agent's last day of use reads an index on agent and day", async () => {
  const db = await openLargeDatabase()
  const tenant = rowNames.tenant(7)
  const sums = { requests: 1, errors: 0, prompt_tokens: 1, completion_tokens: 1, estimated: 0 }
  const histograms = { latency_histogram: '{}', first_byte_histogram: '{}' }
  const ids = Array.from({ length: 20 }, (_, index) => `agent-${index}`)
  for (const agent_id of ids.slice(1)) {
    const rows = Array.from({ length: 300 }, (_, age) => ({
      ...{
        parent_key_id: tenant,
        day: addDays('2026-11-20', -age),
        agent_id,
        model: 'mock',
        provider: 'mock',
      },
      ...sums,
      ...histograms,
    }))
    await db.insertInto('usage_days').values(rows).execute()
  }
  await sql`analyze`.execute(db)
  const found = await listLastDays(db, tenant, ids)
  expect([...found].sort()).toEqual(
    ids
      .slice(1)
      .map((id) => [id, '2026-11-20'])
      .sort(),
  )
  const [statement, ...others] = await listStatements((on) => listLastDays(on, tenant, ids))
  expect(others).toEqual([])
  const plan = await explain(db, statement as CompiledQuery)
  expect(plan).toContain('usage_days_by_agent')
  expect(plan).not.toMatch(/Seq Scan|SCAN usage_days/)
})
