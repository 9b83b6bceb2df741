/** Measures `parley store copy` for a large installation, and whether its duration grows linearly. */
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { copyToPostgres } from '../../src/db/copy.ts'
import { openDatabase } from '../../src/db/open.ts'
import { insertInstallation } from '../support/copy.ts'
import { type PostgresServer, query, startPostgres } from '../support/postgres.ts'
import { BenchFailure } from './connection.ts'
import { type Row, toRow } from './report.ts'
import type { BenchSetup } from './setup.ts'

const MANY = 100_000
const GOAL_SECONDS = 300

/** Measures each copy once and without a warm-up, because operators also copy an installation only once. */
export async function measureCopy(setup: BenchSetup): Promise<Row[]> {
  const server = await startPostgres()
  try {
    const few = await copyOnce(setup, server, MANY / 10)
    const many = await copyOnce(setup, server, MANY)
    const name = `store copy of ${MANY} agents, calls and artifacts, each row compared (bare: a tenth, times 10): s`
    return [toRow(name, [few * 10], [many], { value: GOAL_SECONDS })]
  } finally {
    await server.remove()
  }
}

/** Copies `count` rows of each kind to a new database; returns the duration in seconds. */
async function copyOnce(setup: BenchSetup, server: PostgresServer, count: number): Promise<number> {
  const name = `copy_${count}`
  await query(server.urlOf('postgres'), `create database ${name}`)
  const dataDir = mkdtempSync(join(setup.folder, 'copy-'))
  const { db, close } = await openDatabase({ dataDir, role: 'server' })
  try {
    await insertInstallation(db, count)
    const startedMs = performance.now()
    const counts = await copyToPostgres(db, server.urlOf(name))
    const seconds = (performance.now() - startedMs) / 1_000
    for (const table of ['agents', 'usage_calls', 'artifacts'])
      if (counts[table] !== count) throw new BenchFailure(`${counts[table]} rows of ${table} were copied`)
    return seconds
  } finally {
    await close()
  }
}
