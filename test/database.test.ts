/** The data directory: opened by one server at a time, beside commands, and after every kind of end. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import Sqlite from 'better-sqlite3'
import { type Migration, sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { loadOrCreateSecret } from '../src/db/data-directory.ts'
import { applyMigrations, listPendingMigrations } from '../src/db/migrate.ts'
import { migrations } from '../src/db/migrations/index.ts'
import { mapConstraintError, type OpenedDatabase, openDatabase } from '../src/db/open.ts'
import { assertSqliteVersion, openSqlite, toKysely } from '../src/db/sqlite.ts'
import { StartupError } from '../src/startup-error.ts'

// Many of these start processes, which takes its time on a busy machine.
vi.setConfig({ testTimeout: 30_000 })

const source = (path: string) => JSON.stringify(join(import.meta.dirname, '../src', path))

let folder: string
let dataDir: string
let cleanUps: (() => unknown)[]

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'parley-database-'))
  dataDir = join(folder, 'data')
  cleanUps = []
})
afterEach(async () => {
  for (const cleanUp of cleanUps.reverse()) await cleanUp()
  await rm(folder, { recursive: true, force: true })
})

async function opened(role: 'server' | 'command', directory = dataDir): Promise<OpenedDatabase> {
  const database = await openDatabase({ dataDir: directory, role })
  cleanUps.push(() => database.close())
  return database
}

async function refusal(action: Promise<unknown>): Promise<string> {
  const error = await action.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(StartupError)
  return (error as StartupError).message
}

function raw(path = join(dataDir, 'parley.db')): Sqlite.Database {
  const connection = new Sqlite(path)
  cleanUps.push(() => connection.close())
  return connection
}

const parentKey = (id: string) => ({ id, name: 'test', hint: 'svc_…0000', created_at: 1 })

async function listIds(database: OpenedDatabase): Promise<string[]> {
  const rows = await database.db.selectFrom('parent_keys').select('id').orderBy('id').execute()
  return rows.map((row) => row.id)
}

/** Another process running a script; `say` sends it a line, `hears` waits for its next one. */
class OtherProcess {
  readonly child: ChildProcess
  private readonly lines: AsyncIterator<string>

  constructor(script: string, wrapper: readonly string[] = []) {
    const command = [...wrapper, process.execPath, '--input-type=module', '-e', script]
    this.child = spawn(command[0] ?? '', command.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] })
    if (this.child.stdout === null) throw new Error('a pipe was asked for')
    this.lines = createInterface(this.child.stdout)[Symbol.asyncIterator]()
    cleanUps.push(() => this.kill())
  }

  async hears(): Promise<string> {
    return (await this.lines.next()).value ?? 'nothing'
  }

  say(line: string): void {
    this.child.stdin?.write(`${line}\n`)
  }

  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    this.child.kill('SIGKILL')
    await once(this.child, 'exit')
  }
}

/** Opens the directory in another process, which prints `open` or the refusal, and then holds it. */
const openScript = (role: 'server' | 'command', directory = dataDir) => `
  import { openDatabase } from ${source('db/open.ts')}
  const { db } = await openDatabase({ dataDir: ${JSON.stringify(directory)}, role: '${role}' }).catch((error) => {
    console.log(error.name + ': ' + error.message)
    process.exit()
  })
  console.log('open')
  setInterval(() => {}, 1000)
`

describe('the first start', () => {
  test('creates the directory for its user alone, and the database in it', async () => {
    const database = await opened('server', join(dataDir, 'deep', 'down'))
    expect(await listIds(database)).toEqual([])
    expect((await stat(join(dataDir, 'deep', 'down'))).mode & 0o777).toBe(0o700)
    for (const name of ['parley.db', 'parley.db-wal', '.lock']) {
      expect((await stat(join(dataDir, 'deep', 'down', name))).mode & 0o777).toBe(0o600)
    }
  })

  test('accepts a directory that holds a secret, a lock and what a fresh disk holds', async () => {
    await mkdir(join(dataDir, 'lost+found'), { recursive: true })
    await writeFile(join(dataDir, 'secret'), 'x'.repeat(32))
    await writeFile(join(dataDir, '.lock'), '')
    expect(await listIds(await opened('server'))).toEqual([])
  })

  test('refuses a directory with other files and leaves it as it was', async () => {
    await mkdir(dataDir)
    await writeFile(join(dataDir, 'holiday.jpg'), '')
    expect(await refusal(openDatabase({ dataDir, role: 'server' }))).toContain(
      `${dataDir} holds other files (such as holiday.jpg) but no Parley database`,
    )
    expect(await readdir(dataDir)).toEqual(['holiday.jpg'])
  })

  test('accepts other files beside a database that is there', async () => {
    await (await opened('server')).close()
    await mkdir(join(dataDir, 'files'))
    expect(await listIds(await opened('server'))).toEqual([])
  })

  test('refuses a path that is a file', async () => {
    await writeFile(dataDir, '')
    expect(await refusal(openDatabase({ dataDir, role: 'server' }))).toContain(`${dataDir} cannot be used by`)
  })

  test('is not made by a command, which says where it looked', async () => {
    expect(await refusal(openDatabase({ dataDir, role: 'command' }))).toContain(
      `There is no Parley database in ${dataDir} yet`,
    )
    expect(existsSync(dataDir)).toBe(false)
  })
})

describe('a directory of somebody else', () => {
  const isRoot = process.getuid?.() === 0
  const hasSetpriv = spawnSync('setpriv', ['--version']).status === 0
  const asNobody = isRoot ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : []

  test.skipIf(isRoot && !hasSetpriv)('is refused with its path and the user', async () => {
    await chmod(folder, 0o755)
    await mkdir(dataDir)
    await chmod(dataDir, 0o555)
    const heard = await new OtherProcess(openScript('server'), asNobody).hears()
    expect(heard).toMatch(/^StartupError: The data directory \S+ cannot be used by .*uid \d+.* \(EACCES\)/)
    expect(heard).toContain(`directory ${dataDir} `)
    if (isRoot) expect(heard).toContain('uid 65534')
    expect(await readdir(dataDir)).toEqual([])
  })

  test.skipIf(isRoot && !hasSetpriv)('where none can be created is refused with its path', async () => {
    await chmod(folder, 0o555)
    cleanUps.push(() => chmod(folder, 0o700))
    const heard = await new OtherProcess(openScript('server'), asNobody).hears()
    expect(heard).toContain(`StartupError: The data directory ${dataDir} cannot be used by`)
  })

  test.skipIf(isRoot && !hasSetpriv)('with a database this user may not write is refused', async () => {
    await (await opened('server')).close()
    await chmod(folder, 0o755)
    await chmod(dataDir, 0o777)
    await chmod(join(dataDir, '.lock'), 0o666)
    await chmod(join(dataDir, 'parley.db'), 0o444)
    const refused = `StartupError: The database ${join(dataDir, 'parley.db')} cannot be used by`
    expect(await new OtherProcess(openScript('server'), asNobody).hears()).toContain(refused)
    expect(await new OtherProcess(openScript('command'), asNobody).hears()).toContain(refused)
  })
})

describe('the lock', () => {
  test('refuses a second server of the same process with a sentence that names it', async () => {
    await opened('server')
    expect(await refusal(openDatabase({ dataDir, role: 'server' }))).toBe(
      `Another Parley server (process ${process.pid}) is using the data directory ${dataDir}; stop it, or give this one its own PARLEY_DATA_DIR.`,
    )
  })

  test('still holds after somebody was refused', async () => {
    await opened('server')
    await refusal(openDatabase({ dataDir, role: 'server' }))
    expect(await new OtherProcess(openScript('server')).hears()).toContain(`(process ${process.pid})`)
  })

  test('refuses a second server of another process, until that is killed', async () => {
    const first = new OtherProcess(openScript('server'))
    expect(await first.hears()).toBe('open')
    expect(await refusal(openDatabase({ dataDir, role: 'server' }))).toContain(
      `Another Parley server (process ${first.child.pid})`,
    )
    await first.kill()
    expect(await listIds(await opened('server'))).toEqual([])
  })

  test('ends with close', async () => {
    await (await opened('server')).close()
    const next = new OtherProcess(openScript('server'))
    expect(await next.hears()).toBe('open')
  })

  test('is given back when the start fails after it', async () => {
    await (await opened('server')).close()
    raw().exec(`insert into kysely_migration values ('9999_from_the_future', '')`)
    await refusal(openDatabase({ dataDir, role: 'server' }))
    const next = new OtherProcess(openScript('server'))
    expect(await next.hears()).toContain('9999_from_the_future')
  })

  test('goes to exactly one of several that start in the same moment', async () => {
    const starters = Array.from(
      { length: 4 },
      () =>
        new OtherProcess(`
          import { once } from 'node:events'
          import { openDatabase } from ${source('db/open.ts')}
          console.log('ready')
          await once(process.stdin, 'data')
          await openDatabase({ dataDir: ${JSON.stringify(dataDir)}, role: 'server' })
            .then(() => console.log('open'), (error) => console.log(error.name + ': ' + error.message))
          setInterval(() => {}, 1000)
        `),
    )
    for (const starter of starters) expect(await starter.hears()).toBe('ready')
    for (const starter of starters) starter.say('go')
    const heard = await Promise.all(starters.map((starter) => starter.hears()))
    expect(heard.filter((line) => line === 'open')).toHaveLength(1)
    const refused = heard.filter((line) => line.startsWith('StartupError: Another Parley server'))
    expect(refused).toHaveLength(3)
  })

  test('is never held by two while several take and release it at full speed', async () => {
    await mkdir(dataDir)
    const contender = `
      import { closeSync, openSync, unlinkSync } from 'node:fs'
      import { acquireLock } from ${source('db/lock.ts')}
      const witness = ${JSON.stringify(join(folder, 'witness'))}
      let held = 0
      while (held < 20) {
        let lock
        try { lock = acquireLock(${JSON.stringify(dataDir)}) } catch (error) {
          if (error.name !== 'StartupError' || !error.message.startsWith('Another')) throw error
          continue
        }
        closeSync(openSync(witness, 'wx'))
        unlinkSync(witness)
        lock.release()
        held++
      }
      console.log('had its turns')
    `
    const contenders = [new OtherProcess(contender), new OtherProcess(contender), new OtherProcess(contender)]
    expect(await Promise.all(contenders.map((one) => one.hears()))).toEqual(Array(3).fill('had its turns'))
  })

  test('that is damaged is reported with what to do', async () => {
    await mkdir(dataDir)
    await writeFile(join(dataDir, '.lock'), 'not a database, '.repeat(100))
    expect(await refusal(openDatabase({ dataDir, role: 'server' }))).toMatch(
      /\.lock cannot be used .*delete that file/,
    )
  })
})

describe('a command beside a server', () => {
  test('sees what the server wrote and the other way round', async () => {
    const server = await opened('server')
    await server.db.insertInto('parent_keys').values(parentKey('from-server')).execute()
    const command = await opened('command')
    await command.db.insertInto('parent_keys').values(parentKey('from-command')).execute()
    expect(await listIds(server)).toEqual(['from-command', 'from-server'])
    expect(await listIds(command)).toEqual(['from-command', 'from-server'])
  })

  test('waits for its turn when both write in transactions that begin by reading', async () => {
    const server = await opened('server')
    const writer = new OtherProcess(`
      import { openDatabase } from ${source('db/open.ts')}
      const { db, close } = await openDatabase({ dataDir: ${JSON.stringify(dataDir)}, role: 'command' })
      console.log('open')
      for (let turn = 0; turn < 20; turn++) {
        await db.transaction().execute(async (trx) => {
          await trx.selectFrom('parent_keys').selectAll().execute()
          await trx.insertInto('parent_keys')
            .values({ id: 'command-' + turn, name: '', hint: '', created_at: 1 }).execute()
        })
      }
      await close()
      console.log('done')
    `)
    expect(await writer.hears()).toBe('open')
    for (let turn = 0; turn < 20; turn++) {
      await server.db.transaction().execute(async (trx) => {
        await trx.selectFrom('parent_keys').selectAll().execute()
        await trx
          .insertInto('parent_keys')
          .values(parentKey(`server-${turn}`))
          .execute()
      })
    }
    expect(await writer.hears()).toBe('done')
    expect(await listIds(server)).toHaveLength(40)
  })

  test('takes no lock', async () => {
    await (await opened('server')).close()
    await opened('command')
    expect(await listIds(await opened('server'))).toEqual([])
  })
})

describe('migrations', () => {
  test('are all applied when a server opens the database', async () => {
    const { db } = await opened('server')
    expect(await listPendingMigrations(db, migrations)).toEqual([])
  })

  test('that this version does not know keep server and command away', async () => {
    await (await opened('server')).close()
    raw().exec(`insert into kysely_migration values ('9999_from_the_future', '')`)
    for (const role of ['server', 'command'] as const) {
      expect(await refusal(openDatabase({ dataDir, role }))).toContain(
        'written by another version of Parley (its migration 9999_from_the_future is not known here)',
      )
    }
  })

  test('that are pending keep a command away and are left to the server', async () => {
    await mkdir(dataDir)
    await writeFile(join(dataDir, 'parley.db'), '')
    expect(await refusal(openDatabase({ dataDir, role: 'command' }))).toContain(
      'it lacks 0001_create_keys_and_agents',
    )
    expect(raw().pragma('schema_version', { simple: true })).toBe(0)
    expect(await listIds(await opened('server'))).toEqual([])
  })

  test('that fail leave the database as it was, those before them included', async () => {
    const connection = openSqlite(':memory:')
    cleanUps.push(() => connection.close())
    const db = toKysely(connection)
    const steps: Record<string, Migration> = {
      '0001_create_a': { up: (on) => on.schema.createTable('a').addColumn('id', 'text').execute() },
      '0002_fail': {
        up: async (on) => {
          await on.schema.createTable('b').addColumn('id', 'text').execute()
          throw new Error('no such luck')
        },
      },
    }
    expect(await refusal(applyMigrations(connection, db, steps))).toContain('The migration 0002_fail failed')
    expect(connection.prepare('select name from sqlite_schema').all()).toEqual([])
    expect(connection.pragma('foreign_keys', { simple: true })).toBe(1)
  })

  test('may rebuild a table that others refer to, but not leave a reference to nothing', async () => {
    const connection = openSqlite(':memory:')
    cleanUps.push(() => connection.close())
    const db = toKysely(connection)
    const create: Migration = {
      up: async (on) => {
        await sql`create table parent (id text primary key)`.execute(on)
        await sql`create table child (id text references parent (id) on delete cascade)`.execute(on)
        await sql`insert into parent values ('p')`.execute(on)
        await sql`insert into child values ('p')`.execute(on)
      },
    }
    const rebuild: Migration = {
      up: async (on) => {
        await sql`create table new_parent (id text primary key, name text)`.execute(on)
        await sql`insert into new_parent select id, '' from parent`.execute(on)
        await sql`drop table parent`.execute(on)
        await sql`alter table new_parent rename to parent`.execute(on)
      },
    }
    const lose: Migration = { up: async (on) => void (await sql`delete from parent`.execute(on)) }
    await applyMigrations(connection, db, { '1_create': create, '2_rebuild': rebuild })
    expect(connection.prepare('select * from child').all()).toEqual([{ id: 'p' }])
    expect(
      await refusal(
        applyMigrations(connection, db, { '1_create': create, '2_rebuild': rebuild, '3_lose': lose }),
      ),
    ).toContain('broken reference')
    expect(connection.prepare('select id from parent').all()).toEqual([{ id: 'p' }])
  })
})

describe('after a server was killed', () => {
  /** Writes one row into the database file and one into the log only, then waits to be killed. */
  const writer = () => `
    import Sqlite from ${JSON.stringify(join(import.meta.dirname, '../node_modules/better-sqlite3/lib/index.js'))}
    import { openDatabase } from ${source('db/open.ts')}
    const dataDir = ${JSON.stringify(dataDir)}
    const { db } = await openDatabase({ dataDir, role: 'server' })
    const insert = (id) => db.insertInto('parent_keys').values({ id, name: '', hint: '', created_at: 1 }).execute()
    await insert('early')
    const other = new Sqlite(dataDir + '/parley.db')
    other.pragma('wal_checkpoint(TRUNCATE)')
    other.close()
    await insert('late')
    console.log('written')
    setInterval(() => {}, 1000)
  `

  test('everything it had answered for is there', async () => {
    const server = new OtherProcess(writer())
    expect(await server.hears()).toBe('written')
    await server.kill()
    expect(await listIds(await opened('server'))).toEqual(['early', 'late'])
  })

  test('a damaged page that no query touches is found at the next start', async () => {
    const server = new OtherProcess(writer())
    expect(await server.hears()).toBe('written')
    const reader = new Sqlite(join(dataDir, 'parley.db'), { readonly: true })
    const page = reader
      .prepare(`select rootpage from sqlite_schema where name = 'agents_by_owner'`)
      .pluck()
      .get()
    reader.close()
    await server.kill()
    const file = await open(join(dataDir, 'parley.db'), 'r+')
    await file.write(Buffer.alloc(4096, 0xaa), 0, 4096, (Number(page) - 1) * 4096)
    await file.close()
    expect(await refusal(openDatabase({ dataDir, role: 'server' }))).toMatch(
      /parley\.db is damaged \(.+\); restore it from a backup\.$/,
    )
  })
})

describe('a file that is no database', () => {
  test('is reported as damaged', async () => {
    await mkdir(dataDir)
    await writeFile(join(dataDir, 'parley.db'), 'not a database, '.repeat(1000))
    expect(await refusal(openDatabase({ dataDir, role: 'server' }))).toContain('parley.db is damaged')
  })
})

describe('a connection', () => {
  test('is durable, checks references and mistrusts the schema', async () => {
    const { db } = await opened('server')
    const setting = async (name: string) => {
      const { rows } = await sql<Record<string, unknown>>`pragma ${sql.raw(name)}`.execute(db)
      return Object.values(rows[0] ?? {})[0]
    }
    expect(await setting('journal_mode')).toBe('wal')
    expect(await setting('synchronous')).toBe(2)
    expect(await setting('foreign_keys')).toBe(1)
    expect(await setting('trusted_schema')).toBe(0)
    expect(await setting('busy_timeout')).toBe(5000)
    expect(await setting('wal_autocheckpoint')).toBe(1000)
    expect(await setting('journal_size_limit')).toBe(67_108_864)
  })

  test('moves its log into the database file when it closes, once however often it is closed', async () => {
    const database = await openDatabase({ dataDir, role: 'server' })
    await database.db.insertInto('parent_keys').values(parentKey('kept')).execute()
    await Promise.all([database.close(), database.close()])
    await database.close()
    expect((await readdir(dataDir)).sort()).toEqual(['.lock', 'parley.db'])
    expect(await listIds(await opened('server'))).toEqual(['kept'])
  })

  test('in memory has every table and no file', async () => {
    const first = await opened('server', ':memory:')
    const second = await opened('command', ':memory:')
    await first.db.insertInto('parent_keys').values(parentKey('mine')).execute()
    expect(await listIds(first)).toEqual(['mine'])
    expect(await listIds(second)).toEqual([])
    expect(existsSync(':memory:')).toBe(false)
  })

  test('answers more different statements than it keeps prepared', async () => {
    const { db } = await opened('server', ':memory:')
    for (let length = 1; length <= 600; length++) {
      const ids = Array.from({ length }, (_, index) => `id-${index}`)
      await db.selectFrom('parent_keys').selectAll().where('id', 'in', ids).execute()
    }
    expect(await db.selectFrom('parent_keys').selectAll().where('id', 'in', ['id-0']).execute()).toEqual([])
  })

  test('rolls a failed transaction back and goes on', async () => {
    const database = await opened('server', ':memory:')
    const attempt = database.db.transaction().execute(async (trx) => {
      await trx.insertInto('parent_keys').values(parentKey('lost')).execute()
      throw new Error('changed my mind')
    })
    await expect(attempt).rejects.toThrow('changed my mind')
    await database.db.insertInto('parent_keys').values(parentKey('kept')).execute()
    expect(await listIds(database)).toEqual(['kept'])
  })

  test.each(['3.51.2', '3.9.0', '2.99.99'])('to SQLite %s is refused', (version) => {
    expect(() => assertSqliteVersion(version)).toThrow(`SQLite ${version} is too old: 3.51.3 is needed.`)
  })

  test.each(['3.51.3', '3.51.10', '3.100.0', '4.0.0'])('to SQLite %s is accepted', (version) => {
    expect(() => assertSqliteVersion(version)).not.toThrow()
  })
})

describe('a broken constraint', () => {
  async function errorOf(insert: string): Promise<unknown> {
    const { db } = await opened('server', ':memory:')
    await sql`create table things (id text primary key, name text not null unique, owner text references things (id))`.execute(
      db,
    )
    await sql`insert into things values ('a', 'one', null)`.execute(db)
    return sql
      .raw(`insert into things values ${insert}`)
      .execute(db)
      .then(
        () => 'no error',
        (error: unknown) => error,
      )
  }

  test.each([
    ['of uniqueness on the primary key', `('a', 'two', null)`, 'unique'],
    ['of uniqueness on another column', `('b', 'one', null)`, 'unique'],
    ['of a reference', `('b', 'two', 'nobody')`, 'foreign_key'],
    ['of another kind', `('b', null, null)`, undefined],
  ])('%s is told apart', async (_, insert, kind) => {
    const error = await errorOf(insert)
    expect(error).toMatchObject({ code: expect.stringContaining('SQLITE_CONSTRAINT_') })
    expect(mapConstraintError(error)).toBe(kind)
  })

  test('is told from every other error', () => {
    expect(mapConstraintError(new Error('other'))).toBeUndefined()
    expect(mapConstraintError(undefined)).toBeUndefined()
  })

  test.each([
    ['23505', 'unique'],
    ['23503', 'foreign_key'],
    ['23502', undefined],
  ])('with the PostgreSQL code %s is %s', (code, kind) => {
    expect(mapConstraintError(Object.assign(new Error('pg'), { code }))).toBe(kind)
  })
})

describe('the secret', () => {
  beforeEach(() => mkdir(dataDir))

  test('is made once, readable by its user alone, and of 48 random bytes', async () => {
    const secret = await loadOrCreateSecret(dataDir, randomBytes)
    expect(Buffer.from(secret, 'base64')).toHaveLength(48)
    expect(await readFile(join(dataDir, 'secret'), 'utf8')).toBe(`${secret}\n`)
    expect((await stat(join(dataDir, 'secret'))).mode & 0o777).toBe(0o600)
    expect(await readdir(dataDir)).toEqual(['secret'])
    expect(await loadOrCreateSecret(dataDir, randomBytes)).toBe(secret)
  })

  test('is the same for all who ask at once, in one process and in several', async () => {
    const asker = `
      import { randomBytes } from 'node:crypto'
      import { once } from 'node:events'
      import { loadOrCreateSecret } from ${source('db/data-directory.ts')}
      console.log('ready')
      await once(process.stdin, 'data')
      console.log(await loadOrCreateSecret(${JSON.stringify(dataDir)}, randomBytes))
      process.exit()
    `
    const others = [new OtherProcess(asker), new OtherProcess(asker)]
    for (const other of others) expect(await other.hears()).toBe('ready')
    for (const other of others) other.say('go')
    const here = Array.from({ length: 8 }, () => loadOrCreateSecret(dataDir, randomBytes))
    const secrets = await Promise.all([...here, ...others.map((other) => other.hears())])
    expect(new Set(secrets).size).toBe(1)
    expect(await readdir(dataDir)).toEqual(['secret'])
  })

  test('that an operator wrote is taken without the line end', async () => {
    await writeFile(join(dataDir, 'secret'), `${'x'.repeat(32)}\n`)
    expect(await loadOrCreateSecret(dataDir, randomBytes)).toBe('x'.repeat(32))
  })

  test('of fewer than 32 bytes is refused and stays', async () => {
    await writeFile(join(dataDir, 'secret'), 'too short\n')
    const message = await refusal(loadOrCreateSecret(dataDir, randomBytes))
    expect(message).toContain(`${join(dataDir, 'secret')} must hold at least 32 bytes`)
    expect(message).not.toContain('too short')
    expect(await readFile(join(dataDir, 'secret'), 'utf8')).toBe('too short\n')
  })

  test('in memory is never written', async () => {
    const secret = await loadOrCreateSecret(':memory:', randomBytes)
    expect(Buffer.from(secret, 'base64')).toHaveLength(48)
    expect(existsSync(':memory:')).toBe(false)
  })

  test('that cannot be read is refused with its path', async () => {
    await mkdir(join(dataDir, 'secret'))
    expect(await refusal(loadOrCreateSecret(dataDir, randomBytes))).toContain(
      `The file ${join(dataDir, 'secret')} cannot be used by`,
    )
  })
})
