/** Tests that the sorted pages of lists with 10,000 rows are read from an index. */
import { type CompiledQuery, type Kysely, sql } from 'kysely'
import { expect, inject, onTestFinished, test, vi } from 'vitest'
import { agentSorts, listAgentRows } from '../../../src/agents/store.ts'
import { artifactSorts } from '../../../src/artifacts/listing.ts'
import { listArtifactRows } from '../../../src/artifacts/store.ts'
import { openDatabase } from '../../../src/db/open.ts'
import type { Tables } from '../../../src/db/tables.ts'
import { fileSorts, listFileRows } from '../../../src/files/store.ts'
import { keySorts, selectKeys } from '../../../src/identity/key-store.ts'
import { listUsers, userSorts } from '../../../src/identity/users.ts'
import { insertLargeInstallation, rowNames } from '../../support/large-installation.ts'
import { createTestDatabase } from '../../support/postgres.ts'
import { explain, listStatements } from '../../support/query-plans.ts'

// Inserting many rows may take longer than the default timeout on a busy machine.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 })

const isPostgres = inject('database') === 'postgres'
const ROWS = 10_000
const AT_ONCE = 500
const NOW = 1_700_000_000
const tenant = rowNames.tenant(0)

async function openLargeLists(): Promise<Kysely<Tables>> {
  const databaseUrl = isPostgres ? await createTestDatabase() : undefined
  const { db, close } = await openDatabase({ dataDir: ':memory:', databaseUrl, role: 'server' })
  onTestFinished(close)
  await insertLargeInstallation(db, 1, ROWS)
  await db.transaction().execute(async (trx) => {
    for (let from = 0; from < ROWS; from += AT_ONCE) {
      const numbers = Array.from({ length: AT_ONCE }, (_, index) => from + index)
      await trx.insertInto('files').values(numbers.map(toFile)).execute()
      await trx.insertInto('artifacts').values(numbers.map(toArtifact)).execute()
      await trx.insertInto('users').values(numbers.map(toUser)).execute()
      await trx.insertInto('parent_keys').values(numbers.map(toKey)).execute()
    }
  })
  await sql`analyze`.execute(db)
  return db
}

const nameOf = (number: number) => `name ${(number * 7_919) % ROWS}`
const idOf = (number: number) => String(number).padStart(12, '0')

const toFile = (number: number) => ({
  id: `file-${idOf(number)}`,
  parent_key_id: tenant,
  blob: idOf(number),
  size_bytes: (number * 7_919) % ROWS,
  filename: nameOf(number),
  purpose: 'assistants',
  media_type: 'text/plain',
  position: number,
  created_at: NOW,
})

const toArtifact = (number: number) => ({
  id: idOf(number),
  parent_key_id: tenant,
  state: 'ready' as const,
  kind: 'video' as const,
  filename: nameOf(number),
  size_bytes: (number * 7_919) % ROWS,
  created_at: NOW + number,
})

const toUser = (number: number) => ({
  id: `user-${idOf(number)}`,
  email: `${nameOf(number)}@example.org`,
  name: nameOf(number),
  groups: '[]',
  created_at: NOW + number,
  last_seen_at: NOW + ((number * 7_919) % ROWS),
})

const toKey = (number: number) => ({
  id: `key${idOf(number)}`.slice(0, 15),
  name: nameOf(number),
  hint: 'svc_…0000',
  created_at: NOW + number,
  last_used_at: NOW + ((number * 7_919) % ROWS),
})

/** Returns the query plan of the list's only query. */
async function planOf(db: Kysely<Tables>, run: (on: Kysely<Tables>) => Promise<unknown>): Promise<string> {
  const statements = await listStatements(run)
  expect(statements).toHaveLength(1)
  return explain(db, statements[0] as CompiledQuery)
}

test('every sort order of a list with 10,000 rows reads one page from an index, without sorting', async () => {
  const db = await openLargeLists()
  const plans = new Map<string, string>()
  for (const order of ['asc', 'desc'] as const) {
    for (const [name, page] of Object.entries({ first: undefined, next: { key: 5_000, id: 'x' } })) {
      const after = page
      for (const by of Object.keys(agentSorts) as (keyof typeof agentSorts)[]) {
        const place = by === 'name' && after ? { ...after, key: nameOf(1) } : after
        const bounds = order === 'asc' ? { above: place } : { below: place }
        plans.set(
          `agents ${by} ${order} ${name}`,
          await planOf(db, (on) => listAgentRows(on, tenant, { by, order, ...bounds, limit: 50 })),
        )
      }
      for (const sort of Object.keys(fileSorts) as (keyof typeof fileSorts)[]) {
        const place = sort === 'name' && after ? { ...after, key: nameOf(1) } : after
        const query = { sort, order, after: place, limit: 50, q: undefined, purpose: undefined }
        plans.set(
          `files ${sort} ${order} ${name}`,
          await planOf(db, (on) => listFileRows(on, tenant, NOW, query)),
        )
      }
      for (const [sort, by] of Object.entries(artifactSorts)) {
        const place = sort === 'name' && after ? { ...after, key: nameOf(1) } : after
        const query = { by, order, after: place, limit: 50 }
        plans.set(
          `artifacts ${sort} ${order} ${name}`,
          await planOf(db, (on) => listArtifactRows(on, tenant, NOW, query)),
        )
      }
    }
    for (const sort of Object.keys(userSorts) as (keyof typeof userSorts)[])
      plans.set(
        `users ${sort} ${order}`,
        await planOf(db, (on) => listUsers({ db: on }, { sort, order, limit: 50 })),
      )
    for (const sort of Object.keys(keySorts) as (keyof typeof keySorts)[])
      plans.set(
        `keys ${sort} ${order}`,
        await planOf(db, (on) => selectKeys(on, { sort, order, limit: 50 }, NOW)),
      )
  }
  for (const [what, plan] of plans) {
    // An incremental sort reads only the rows of the page.
    expect(plan, what).toMatch(isPostgres ? /Index/ : /USING INDEX/)
    expect(plan, what).not.toMatch(isPostgres ? /Seq Scan|-> {2}Sort|^Sort /m : /TEMP B-TREE FOR ORDER BY/)
  }
})
