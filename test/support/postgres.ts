/** Runs PostgreSQL servers for tests and creates databases on them. */

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chown, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { inject, onTestFinished } from 'vitest'
import { openDatabase } from '../../src/db/open.ts'
import { findFreePort } from './free-port.ts'
import { getProgram } from './programs.ts'

const run = promisify(execFile)

/** The user id for PostgreSQL if the tests run as root; PostgreSQL itself refuses to run as root. */
const NOBODY = 65_534

export interface PostgresServer {
  readonly port: number
  /** Returns the URL of a database, which need not exist. */
  urlOf(database: string): string
  /** Stops the server gracefully; it notifies its clients. */
  stop(): Promise<void>
  /** Stops the server as in a crash. */
  kill(): Promise<void>
  /** Pauses or continues all processes of the server. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): Promise<void>
  /** Starts the server again on the same port and with the same data. */
  start(): Promise<void>
  /** Stops the server and removes its folder. */
  remove(): Promise<void>
}

/** Creates and starts a server on a free port; it does not sync its writes to disk. */
export async function startPostgres(): Promise<PostgresServer> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-postgres-'))
  const isRoot = process.getuid?.() === 0
  if (isRoot) await chown(folder, NOBODY, NOBODY)
  const asNobody = isRoot ? [`--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'] : []
  // Stops the server when the test run is killed.
  const asUser = ['setpriv', ...asNobody, '--pdeathsig=QUIT']
  const data = join(folder, 'data')
  const [initdb, postgres] = [getProgram('initdb'), getProgram('postgres')]
  const words = [
    ...asUser,
    initdb,
    '-D',
    data,
    '-U',
    'parley',
    '-E',
    'UTF8',
    '--locale=C.UTF-8',
    '-A',
    'trust',
    '-N',
  ]
  await run(words[0] as string, words.slice(1), { cwd: folder })
  const port = await findFreePort()
  let child: ChildProcess | undefined

  async function start(): Promise<void> {
    const settings = [`port=${port}`, 'listen_addresses=127.0.0.1', `unix_socket_directories=${folder}`]
    settings.push('fsync=off', 'full_page_writes=off', 'max_connections=300', 'shared_buffers=64MB')
    const [command = '', ...rest] = [
      ...asUser,
      postgres,
      '-D',
      data,
      ...settings.flatMap((one) => ['-c', one]),
    ]
    const started = spawn(command, rest, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
    child = started
    let said = ''
    started.stderr.setEncoding('utf8')
    await new Promise<void>((resolve, reject) => {
      started.stderr.on('data', (text: string) => {
        said = (said + text).slice(-4_000)
        if (said.includes('ready to accept connections')) resolve()
      })
      started.once('exit', () => reject(new Error(`PostgreSQL did not start:\n${said}`)))
    })
  }

  async function end(name: 'SIGINT' | 'SIGKILL'): Promise<void> {
    const ending = child
    child = undefined
    if (ending === undefined || ending.exitCode !== null || ending.signalCode !== null) return
    const exited = once(ending, 'exit')
    ending.kill('SIGCONT')
    // SIGINT is a fast shutdown, which closes connections; SIGQUIT is an immediate shutdown.
    ending.kill(name === 'SIGINT' ? 'SIGINT' : 'SIGQUIT')
    await exited
  }

  await start()
  return {
    port,
    urlOf: (database) => `postgres://parley@127.0.0.1:${port}/${database}`,
    stop: () => end('SIGINT'),
    kill: () => end('SIGKILL'),
    async signal(name) {
      const pid = child?.pid as number
      const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')
      for (const one of [pid, ...children.trim().split(' ').map(Number)]) {
        try {
          process.kill(one, name)
        } catch (error) {
          // The process of a closed connection may have exited already.
          if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
        }
      }
    },
    start,
    async remove() {
      await end('SIGKILL')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** The name of the template database that test databases are copied from. */
const TEMPLATE = 'parley_template'

/** Creates the template database with the current schema. */
export async function createTemplate(server: Pick<PostgresServer, 'urlOf'>): Promise<void> {
  await query(server.urlOf('postgres'), `create database ${TEMPLATE}`)
  const databaseUrl = server.urlOf(TEMPLATE)
  await (await openDatabase({ dataDir: ':memory:', databaseUrl, role: 'server' })).close()
}

/** Creates a database that is dropped when the test ends; returns its URL. */
export async function createTestDatabase(kind: 'migrated' | 'empty' = 'migrated'): Promise<string> {
  const name = `test_${randomBytes(8).toString('hex')}`
  const maintenance = inject('postgresUrl')
  await query(maintenance, `create database ${name}${kind === 'migrated' ? ` template ${TEMPLATE}` : ''}`)
  onTestFinished(async () => void (await query(maintenance, `drop database ${name} with (force)`)))
  return urlOf(name)
}

/**
 * An open connection to a test database. It is reused, because connecting takes longer than emptying the
 * tables.
 */
interface Borrowable {
  readonly url: string
  readonly client: pg.Client
}

/** Unused test databases; emptying one is ten times as fast as creating one. */
const unused: Borrowable[] = []
let borrowed = 0

/** Returns an empty database with the current schema; `giveBack` makes it available again. */
export async function borrowDatabase(): Promise<{ readonly url: string; giveBack(): void }> {
  const one = unused.pop() ?? (await makeBorrowable())
  await one.client.query(emptyAll)
  return { url: one.url, giveBack: () => void unused.push(one) }
}

async function makeBorrowable(): Promise<Borrowable> {
  const name = `worker_${process.env.VITEST_POOL_ID}_${borrowed++}`
  await query(inject('postgresUrl'), `create database ${name} template ${TEMPLATE}`).catch((error) => {
    // An earlier worker has already created the database.
    if (error.code !== '42P04') throw error
  })
  const url = urlOf(name)
  const client = new pg.Client({ connectionString: url })
  // PostgreSQL may stop before this worker.
  client.on('error', () => {})
  await client.connect()
  return { url, client }
}

/** Ends other connections, and deletes all rows and the triggers that a failed test has left behind. */
const emptyAll = `do $$ declare name text; begin
  perform pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid();
  drop function if exists fail_at() cascade;
  set local session_replication_role = replica;
  for name in select tablename from pg_tables where schemaname = 'public' and tablename <> 'kysely_migration' loop
    execute format('delete from %I', name);
  end loop; end $$`

function urlOf(database: string): string {
  const url = new URL(inject('postgresUrl'))
  url.pathname = `/${database}`
  return url.href
}

/** Runs one statement on a new connection; returns its rows. */
export async function query(databaseUrl: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

declare module 'vitest' {
  export interface ProvidedContext {
    /** The URL of the database `postgres` on the test run's server. */
    postgresUrl: string
    /** The kind of database that test services use. */
    database: 'sqlite' | 'postgres'
  }
}
