/**
 * Implements the `parley doctor` checks for the stored conversations. They do not create or change anything.
 */
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import { listRetention } from '../../agents/agents.ts'
import type { Config } from '../../config/config.ts'
import { type Inspected, inspectConversations, listUnknownAgents } from '../../conversations/operator.ts'
import type { Database } from '../../db/database.ts'
import { conversationMigrations, listPendingMigrations } from '../../db/migrate.ts'
import {
  type ConversationDb,
  conversationsFile,
  conversationTableNames,
  createConversationStorage,
  openDatabase,
} from '../../db/open.ts'
import { assertSound, openSqlite, toKysely } from '../../db/sqlite.ts'
import { systemClock, unixSeconds } from '../../lib/clock.ts'
import { sentenceOf } from './data.ts'
import { type Diagnostic, fail, ok, warn } from './diagnostic.ts'

const CHECK = 'conversations'
const MEBIBYTE = 1024 ** 2
/** Fraction of the quota above which the check warns. */
const NEARLY_FULL = 0.9

/** Returns nothing if the main database cannot be opened, because another check reports that. */
export async function checkConversations(config: Config): Promise<Diagnostic[]> {
  const { dataDir, databaseUrl } = config
  if (databaseUrl === undefined && dataDir === ':memory:') return []
  const opened = await openDatabase({ ...config, role: 'command' }).catch(() => undefined)
  if (opened === undefined) return []
  try {
    return databaseUrl === undefined
      ? await checkFile(config, opened.db)
      : await checkTables(config, opened.db, databaseUrl)
  } finally {
    await opened.close()
  }
}

async function checkFile(config: Config, main: Database): Promise<Diagnostic[]> {
  const path = join(config.dataDir, conversationsFile)
  if (!existsSync(path)) return [ok(CHECK, 'no conversations are stored yet')]
  try {
    return await checkOpenedFile(config, main, path)
  } catch (error) {
    return [fail(CHECK, sentenceOf(error, path))]
  }
}

async function checkOpenedFile(config: Config, main: Database, path: string): Promise<Diagnostic[]> {
  const connection = openSqlite(path)
  try {
    assertSound(connection, path)
    const db: ConversationDb = toKysely(connection)
    const pending = await listPendingMigrations(db, conversationMigrations)
    if (pending.length > 0) {
      const message = `${path}: the next start runs these migrations: ${pending.join(', ')}`
      return [warn(CHECK, message)]
    }
    return await diagnose(config, main, db, `${toMebibytes(statSync(path).size)}, no corruption found`)
  } finally {
    connection.close()
  }
}

async function checkTables(config: Config, main: Database, databaseUrl: string): Promise<Diagnostic[]> {
  const opened = await createConversationStorage({ db: main, databaseUrl }, config.dataDir).open()
  const { rows } = await sql<{ bytes: number }>`
    select sum(pg_total_relation_size(name::regclass))::bigint as bytes
    from unnest(${[...conversationTableNames]}::text[]) as name`.execute(main)
  return diagnose(config, main, opened.read, toMebibytes(Number(rows[0]?.bytes)))
}

async function diagnose(
  config: Config,
  main: Database,
  db: ConversationDb,
  size: string,
): Promise<Diagnostic[]> {
  const inspected = await inspectConversations(db, unixSeconds(systemClock))
  const { conversations, runningTurns } = inspected
  const unknown = await listUnknownAgents(db, (ids) => listRetention({ db: main }, ids))
  const found = `${conversations} conversations, ${runningTurns} running turns, ${size}`
  return [
    ok(CHECK, found),
    ...listTurnProblems(inspected),
    ...listQuotaProblems(config, inspected),
    ...listMismatch(unknown),
  ]
}

function* listTurnProblems({ abandonedTurns, overdue }: Inspected): Iterable<Diagnostic> {
  if (abandonedTurns > 0)
    yield warn(
      'stored turns',
      `${abandonedTurns} turns were interrupted when their server stopped; start a server, which ends them within 20 seconds`,
    )
  if (overdue > 0)
    yield warn(
      'retention',
      `${overdue} conversations expired more than an hour ago; start a server, which deletes them, or run \`parley conversations prune\``,
    )
}

function* listQuotaProblems(
  { conversations: { maxBytes } }: Pick<Config, 'conversations'>,
  { largest }: Inspected,
): Iterable<Diagnostic> {
  if (largest === undefined || maxBytes === 0 || largest.bytes < maxBytes * NEARLY_FULL) return
  const used = `${toMebibytes(largest.bytes)} of ${toMebibytes(maxBytes)}`
  yield warn(
    'conversation quota',
    `the parent key ${largest.tenantId} has stored ${used}, and the server stores no turns above the limit; raise PARLEY_CONVERSATIONS_MAX_BYTES or delete conversations`,
  )
}

function* listMismatch(unknown: readonly string[]): Iterable<Diagnostic> {
  if (unknown.length === 0) return
  yield warn(
    'agents of conversations',
    `the database does not know ${unknown.length} agents that have stored conversations (such as ${unknown[0]}), so it is probably older than the conversations; restore both from the same backup. The conversations are kept until they expire`,
  )
}

function toMebibytes(bytes: number): string {
  return `${(bytes / MEBIBYTE).toFixed(1)} MiB`
}
