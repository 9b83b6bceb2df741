/** A PostgreSQL server of the tests' own: on a free port, in a temporary folder, not as root, gone at the end. */

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

/** Whom PostgreSQL runs as where the tests are root, which it refuses. */
const NOBODY = 65_534

/** A server of the tests' own. */
export interface PostgresServer {
  readonly port: number
  /** Where that database is, which need not be there. */
  urlOf(database: string): string
  /** As an operator stops it: whoever is connected is told. */
  stop(): Promise<void>
  /** As a crash does. */
  kill(): Promise<void>
  /** Holds every process of it until the signal to go on. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): Promise<void>
  /** Starts it again, on the same port with the same rows. */
  start(): Promise<void>
  /** Ends it and its folder. */
  remove(): Promise<void>
}

/** Makes and starts a server; nothing is written through to the disk. */
export async function startPostgres(): Promise<PostgresServer> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-postgres-'))
  const isRoot = process.getuid?.() === 0
  if (isRoot) await chown(folder, NOBODY, NOBODY)
  const asNobody = isRoot ? [`--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'] : []
  // A run that is killed does not leave it behind.
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
    // The first is for the server to end at once, its connections included.
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
          // A backend of a connection that has just closed exits before the signal.
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

/** The database that every test's own is copied from. */
export const TEMPLATE = 'parley_template'

/** Makes the database that others are copied from, with this version's schema. */
export async function createTemplate(server: Pick<PostgresServer, 'urlOf'>): Promise<void> {
  await query(server.urlOf('postgres'), `create database ${TEMPLATE}`)
  const databaseUrl = server.urlOf(TEMPLATE)
  await (await openDatabase({ dataDir: ':memory:', databaseUrl, role: 'server' })).close()
}

/** A database of its own on the run's server until the test ends; migrated unless it is to be `empty`. */
export async function createTestDatabase(kind: 'migrated' | 'empty' = 'migrated'): Promise<string> {
  const name = `test_${randomBytes(8).toString('hex')}`
  const maintenance = inject('postgresUrl')
  await query(maintenance, `create database ${name}${kind === 'migrated' ? ` template ${TEMPLATE}` : ''}`)
  onTestFinished(async () => void (await query(maintenance, `drop database ${name} with (force)`)))
  return urlOf(name)
}

/** A database of this worker, and a connection to it that is kept: to make one costs the server more than to empty the tables. */
interface Borrowable {
  readonly url: string
  readonly client: pg.Client
}

/** Those that nobody is using; to empty one takes a tenth of making one. */
const unused: Borrowable[] = []
let borrowed = 0

/** A migrated database without rows, until it is given back. */
export async function borrowDatabase(): Promise<{ readonly url: string; giveBack(): void }> {
  const one = unused.pop() ?? (await makeBorrowable())
  await one.client.query(emptyAll)
  return { url: one.url, giveBack: () => void unused.push(one) }
}

async function makeBorrowable(): Promise<Borrowable> {
  const name = `worker_${process.env.VITEST_POOL_ID}_${borrowed++}`
  await query(inject('postgresUrl'), `create database ${name} template ${TEMPLATE}`).catch((error) => {
    // A worker that is gone has left it.
    if (error.code !== '42P04') throw error
  })
  const url = urlOf(name)
  const client = new pg.Client({ connectionString: url })
  // The server goes before the workers do.
  client.on('error', () => {})
  await client.connect()
  return { url, client }
}

/** Deletes every row, and what a test that failed has left; the order of the tables does not matter then. */
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

/** Runs one statement on a connection of its own. */
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
    /** The maintenance database of the run's server. */
    postgresUrl: string
    /** What services of tests keep their rows in. */
    database: 'sqlite' | 'postgres'
  }
}
