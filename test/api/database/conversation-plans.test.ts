/** Tests that conversation lists are read from an index in order, without sorting. */
import { type CompiledQuery, sql } from 'kysely'
import { expect, inject, onTestFinished, test, vi } from 'vitest'
import { listAnyConversations } from '../../../src/conversations/operator.ts'
import { type ConversationDb, createConversationStorage, openDatabase } from '../../../src/db/open.ts'
import { createTestDatabase } from '../../support/postgres.ts'
import { explain, listStatements } from '../../support/query-plans.ts'

// Inserting many rows may take longer than the default timeout on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

const isPostgres = inject('database') === 'postgres'

/** Opens a database with 6,000 conversations of 4 tenants, each with 2 agents. */
async function openLargeStore(): Promise<ConversationDb> {
  const databaseUrl = isPostgres ? await createTestDatabase() : undefined
  const { db, close } = await openDatabase({ dataDir: ':memory:', databaseUrl, role: 'server' })
  const storage = createConversationStorage({ db, databaseUrl }, ':memory:')
  onTestFinished(async () => {
    await storage.close()
    await close()
  })
  const { write } = await storage.open()
  for (let from = 0; from < 6_000; from += 200) {
    const rows = Array.from({ length: 200 }, (_, index) => toRow(from + index))
    await write.insertInto('conversations').values(rows).execute()
  }
  await sql`analyze`.execute(write)
  return write
}

function toRow(index: number) {
  return {
    id: `conv_${String(index).padStart(24, '0')}`,
    tenant: `tenant-${index % 4}`,
    agent_id: `agent-${index % 8}`,
    visitor_id: null,
    channel: 'api' as const,
    mode_since: index,
    assignee: null,
    busy_turn: null,
    title: 'Hello',
    cost: null,
    created_at: index,
    last_at: index,
    position: index,
    expires_at: index,
  }
}

test('conversation lists are read from an index in order, without sorting', async () => {
  const db = await openLargeStore()
  const page = { limit: 51, order: 'desc' } as const
  const third = { last_at: 3_000, position: 3_000 }
  const [tenantId, agentId] = ['tenant-1', 'agent-1']
  const lists: Record<string, (on: ConversationDb) => Promise<unknown>> = {
    'of a tenant': (on) => listAnyConversations(on, { tenantId }, page),
    'of a tenant, next page': (on) => listAnyConversations(on, { tenantId }, { ...page, after: third }),
    'by activity': (on) => listAnyConversations(on, { tenantId }, { ...page, sort: 'activity' }),
    'by activity, next page': (on) =>
      listAnyConversations(on, { tenantId }, { ...page, sort: 'activity', after: third }),
    'of an agent': (on) => listAnyConversations(on, { tenantId, agentId }, page),
    'to export': (on) => listAnyConversations(on, { tenantId }, { limit: 20, after: third, order: 'asc' }),
  }
  for (const [what, list] of Object.entries(lists)) {
    const statements = await listStatements(list)
    expect(statements, what).toHaveLength(1)
    const plan = await explain(db, statements[0] as CompiledQuery)
    const order = what.startsWith('by activity') ? 'activity' : 'position'
    const index = `conversations_by_${what === 'of an agent' ? 'agent' : order}`
    expect(plan, what).toContain(index)
    expect(plan, what).not.toMatch(/Sort|Seq Scan|TEMP B-TREE|SCAN/)
  }
})
