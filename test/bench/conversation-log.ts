/** Measures lists, searches and exports of many stored conversations on SQLite. */
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { sql } from 'kysely'
import { exportTurns } from '../../src/conversations/admin/export.ts'
import type { ConversationFilter } from '../../src/conversations/admin/filters.ts'
import { ItemData, listAnyConversations, renderConversations } from '../../src/conversations/operator.ts'
import { findMatches } from '../../src/conversations/search/matches.ts'
import { parseSearch } from '../../src/conversations/search/query.ts'
import { type ConversationDatabase, createConversationStorage, openDatabase } from '../../src/db/open.ts'
import { BenchFailure } from './connection.ts'
import { type Row, toRow } from './report.ts'
import type { BenchSetup } from './setup.ts'

const TENANT = 'tenant'
const MESSAGES_EACH = 10
const WORDS_EACH = 40
const VOCABULARY = 20_000
const RUNS = 40
const SHARE = 0.95
const EXPORTED = 2_000
const MEBIBYTE = 1024 ** 2

export async function measureConversationLog(setup: BenchSetup): Promise<Row[]> {
  const isQuick = setup.starts === 1
  const count = isQuick ? 10_000 : 100_000
  const dataDir = mkdtempSync(join(setup.folder, 'log-'))
  const main = await openDatabase({ dataDir, role: 'server' })
  const storage = createConversationStorage({ db: main.db, databaseUrl: undefined }, dataDir)
  try {
    const database = await storage.open()
    fill(join(dataDir, 'conversations.db'), count)
    await sql`analyze`.execute(database.write)
    const size = `${count.toLocaleString('en')} conversations`
    const messages = `${(count * MESSAGES_EACH).toLocaleString('en')} messages`
    return [
      await measureLists(`50 of ${size}: p95 ms`, database),
      await measureSearches(`words in ${messages}: p95 ms`, database),
      await measureExport(database),
    ]
  } finally {
    await storage.close()
    await main.close()
  }
}

/** The word with this rank; words of low ranks are frequent. */
const wordOf = (rank: number) => `w${rank.toString(36)}`

/** Inserts conversations with one turn and ten messages each, without the write thread, which is slower. */
function fill(path: string, count: number): void {
  const db = new Sqlite(path)
  db.pragma('synchronous = OFF')
  let seed = 1
  const random = () => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed / 2_147_483_647
  }
  const text = () =>
    Array.from({ length: WORDS_EACH }, () => wordOf(Math.floor(random() ** 4 * VOCABULARY))).join(' ')
  const conversation = db.prepare(`insert into conversations
    (id, tenant, agent_id, channel, mode_since, title, turns, items, failures, created_at, last_at, position, expires_at)
    values (?, '${TENANT}', ?, 'api', 1, 'Title', 1, ${MESSAGES_EACH}, ?, ?, ?, ?, 4000000000)`)
  const turn = db.prepare(`insert into turns
    (id, tenant, agent_id, conversation_id, number, kind, status, error_code, background, on_disconnect, agent_version, model, request, request_id, created_at)
    values (?, '${TENANT}', ?, ?, 1, 'model', ?, ?, 0, 'cancel', 1, 'm', '{}', 'r', ?)`)
  const item = db.prepare(`insert into items
    (n, id, conversation_id, turn_id, position, type, role, author, status, for_visitor, for_model, body, bytes, created_at)
    values (?, ?, ?, ?, ?, 'message', ?, ?, 'completed', 1, 1, ?, ?, ?)`)
  const words = db.prepare('insert into item_texts (n, conversation_id, text) values (?, ?, ?)')
  const insert = db.transaction((from: number, to: number) => {
    for (let index = from; index < to; index++) {
      const [id, turnId, agent] = [`conv_${index}`, `turn_${index}`, `agent-${index % 20}`]
      const isFailed = index % 50 === 0
      conversation.run(id, agent, isFailed ? 1 : 0, index, index, index * 1_000_000)
      turn.run(turnId, agent, id, isFailed ? 'failed' : 'completed', isFailed ? 'backend_error' : null, index)
      for (let place = 1; place <= MESSAGES_EACH; place++) {
        const n = index * MESSAGES_EACH + place
        const said = text()
        const role = place % 2 === 1 ? 'user' : 'assistant'
        const type = role === 'user' ? 'input_text' : 'output_text'
        const body = JSON.stringify({
          type: 'message',
          id: `msg_${n}`,
          role,
          content: [{ type, text: said }],
        })
        const author = role === 'user' ? 'visitor' : 'model'
        item.run(n, `msg_${n}`, id, turnId, place, role, author, body, body.length, index)
        words.run(n, id, said)
      }
    }
  })
  for (let from = 0; from < count; from += 1_000) insert(from, Math.min(count, from + 1_000))
  db.close()
}

async function list(database: ConversationDatabase, filter: ConversationFilter): Promise<number> {
  const page = { limit: 51, after: undefined, order: 'desc' } as const
  const startedMs = performance.now()
  const rows = await listAnyConversations(database.read, { tenantId: TENANT, ...filter }, page)
  const listed = await renderConversations(database, rows.slice(0, 50))
  if (filter.search !== undefined)
    await findMatches(
      database.read,
      listed.map(({ id }) => id),
      filter.search,
    )
  if (listed.length === 0) throw new BenchFailure(`nothing was found for ${JSON.stringify(filter)}`)
  return performance.now() - startedMs
}

async function measureAll(
  database: ConversationDatabase,
  name: string,
  filters: readonly ConversationFilter[],
  limitMs: number,
): Promise<Row> {
  const times: number[] = []
  for (let run = 0; run < RUNS; run++) for (const filter of filters) times.push(await list(database, filter))
  times.sort((one, other) => one - other)
  const p95 = times[Math.floor(times.length * SHARE)] as number
  return toRow(name, [Number.NaN], [p95], { value: limitMs })
}

function measureLists(name: string, database: ConversationDatabase): Promise<Row> {
  const filters = [
    {},
    { agentId: 'agent-7' },
    { status: 'failed' },
    { error: 'backend_error' },
    { version: 1 },
  ]
  return measureAll(database, name, filters as ConversationFilter[], 20)
}

function measureSearches(name: string, database: ConversationDatabase): Promise<Row> {
  const texts = [
    // From the most frequent words to rare ones.
    ...[0, 1, 5, 20, 100, 500, 2_000, 10_000, 19_000].map(wordOf),
    `${wordOf(3)} ${wordOf(400)}`,
    `${wordOf(50)} -${wordOf(0)}`,
    `${wordOf(15_000).slice(0, 3)}*`,
  ]
  return measureAll(
    database,
    name,
    texts.map((text) => ({ search: parseSearch(text) })),
    50,
  )
}

/** Exports some of the turns; the row's value is the largest amount of additional memory. */
async function measureExport(database: ConversationDatabase): Promise<Row> {
  const data = new ItemData({
    openBlobs: async () => {
      throw new BenchFailure('the items have no blobs')
    },
  } as never)
  const before = process.memoryUsage().rss
  let most = 0
  let lines = 0
  for await (const line of exportTurns({ database, data }, { tenantId: TENANT }, EXPORTED)) {
    lines += JSON.stringify(line).length > 0 ? 1 : 0
    if (lines % 20 === 0) most = Math.max(most, process.memoryUsage().rss - before)
  }
  if (lines !== EXPORTED + 1) throw new BenchFailure(`the export has ${lines} lines`)
  const name = `export of ${EXPORTED.toLocaleString('en')} turns: MiB of additional memory`
  return toRow(name, [Number.NaN], [most / MEBIBYTE], { value: 32 })
}
