/**
 * Measures lookups of keys, agents and policies with 100 and with 100,000 agents, on SQLite and PostgreSQL.
 */
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { type Kysely, sql } from 'kysely'
import { findAgent, listAgentRows } from '../../src/agents/store.ts'
import type { OpenedDatabase } from '../../src/db/database.ts'
import { openDatabase } from '../../src/db/open.ts'
import type { Tables } from '../../src/db/tables.ts'
import { findCredential } from '../../src/identity/key-store.ts'
import type { ModelPolicy } from '../../src/models/policy.ts'
import { insertLargeInstallation, rowNames } from '../support/large-installation.ts'
import { query, startPostgres } from '../support/postgres.ts'
import { BenchFailure } from './connection.ts'
import { type Row, toRow } from './report.ts'
import type { BenchSetup } from './setup.ts'

/** A database with 100 agents for each parent key. */
interface Crowd {
  readonly keys: number
  readonly agents: number
  readonly db: Kysely<Tables>
}

const sizes = { few: { keys: 1, agents: 100 }, many: { keys: 1_000, agents: 100_000 } } as const
const goal = { ratio: 1.5 }

/** Performs one lookup for the agent with this number; returns 1 if the result is complete. */
type LookUp = (crowd: Crowd, agent: number) => Promise<number>

const lookUps: Readonly<Record<string, { readonly count: number; readonly run: LookUp }>> = {
  'key look-up': {
    count: 200,
    run: async ({ db }, agent) => ((await findCredential(db, rowNames.digest(agent))) === undefined ? 0 : 1),
  },
  "list of one key's agents": {
    count: 20,
    run: async ({ db, keys }, agent) =>
      (await listAgentRows(db, rowNames.tenant(agent % keys), { by: 'created', order: 'desc' })).length / 100,
  },
  'policy resolution': {
    count: 200,
    run: async ({ db, keys }, agent) => {
      const found = await findAgent(db, rowNames.tenant(agent % keys), rowNames.agent(agent))
      const policy: ModelPolicy = JSON.parse(found?.model_policy ?? '{}')
      return policy.max_output_tokens === 500 ? 1 : 0
    },
  },
}

export async function measureScale(setup: BenchSetup): Promise<Row[]> {
  const onSqlite = await measureOn('SQLite', setup, async () =>
    openDatabase({ dataDir: mkdtempSync(join(setup.folder, 'crowd-')), role: 'server' }),
  )
  const server = await startPostgres()
  try {
    const onPostgres = await measureOn('PostgreSQL', setup, async (name) => {
      await query(server.urlOf('postgres'), `create database ${name}`)
      return openDatabase({ dataDir: ':memory:', databaseUrl: server.urlOf(name), role: 'server' })
    })
    return [...onSqlite, ...onPostgres]
  } finally {
    await server.remove()
  }
}

async function measureOn(
  database: string,
  setup: BenchSetup,
  open: (name: string) => Promise<OpenedDatabase>,
): Promise<Row[]> {
  const opened = { few: await open('few'), many: await open('many') }
  try {
    const few = await fill(opened.few, sizes.few)
    const many = await fill(opened.many, sizes.many)
    const rows: Row[] = []
    for (const [name, lookUp] of Object.entries(lookUps)) {
      const [ofFew, ofMany] = await compareCrowds([few, many], lookUp, setup.effort)
      rows.push(toRow(`${name} of 100,000 agents (bare: of 100), ${database}: µs`, ofFew, ofMany, goal))
    }
    return rows
  } finally {
    await opened.few.close()
    await opened.many.close()
  }
}

async function fill({ db }: OpenedDatabase, size: Omit<Crowd, 'db'>): Promise<Crowd> {
  await insertLargeInstallation(db, size.keys, size.agents)
  await sql`analyze`.execute(db)
  return { ...size, db }
}

/**
 * Returns each turn's microseconds per lookup in both databases. Measures wall time, because PostgreSQL is
 * a separate process.
 */
async function compareCrowds(
  [few, many]: readonly [Crowd, Crowd],
  { count, run }: { readonly count: number; readonly run: LookUp },
  { warmUps, rounds, limitMs }: BenchSetup['effort'],
): Promise<[number[], number[]]> {
  const takeTurn = async (crowd: Crowd, turn: number): Promise<number> => {
    const startedMs = performance.now()
    for (let index = 0; index < count; index++) {
      // Multiplying by a prime number spreads the lookups over all agents without repetitions.
      const agent = ((turn * count + index) * 7_919) % crowd.agents
      if ((await run(crowd, agent)) !== 1)
        throw new BenchFailure(`agent ${agent} was not found, or its row is wrong`)
    }
    return ((performance.now() - startedMs) * 1e3) / count
  }
  const [ofFew, ofMany]: [number[], number[]] = [[], []]
  const endMs = performance.now() + limitMs
  for (let turn = 0; turn < warmUps + rounds; turn++) {
    if (ofFew.length >= 3 && performance.now() > endMs) break
    const [one, other] = [await takeTurn(few, turn), await takeTurn(many, turn)]
    if (turn < warmUps) continue
    ofFew.push(one)
    ofMany.push(other)
  }
  return [ofFew, ofMany]
}
