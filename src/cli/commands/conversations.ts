/**
 * The `conversations` commands list, show, export, delete and maintain the stored conversations of all
 * tenants.
 */

import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { listRetention } from '../../agents/agents.ts'
import { loadSealer } from '../../agents/sealed-keys.ts'
import { createForgetSpending, type ForgetSpending } from '../../budgets/subjects.ts'
import type { Config } from '../../config/config.ts'
import { maintainConversations, recordExpiry } from '../../conversations/conversations.ts'
import {
  type ConversationFilter,
  type ConversationLine,
  type ConversationRow,
  deleteAnyConversation,
  exportTurns,
  findAnyConversation,
  type ItemData,
  listAnyConversations,
  readFilter,
  readLastLines,
  rebuildIndex,
  renderConversations,
} from '../../conversations/operator.ts'
import type { ConversationDatabase, ConversationStorage } from '../../db/open.ts'
import { recordAudit } from '../../identity/audit.ts'
import { ServiceError, StartupError } from '../../lib/errors.ts'
import { createLog } from '../../telemetry/log.ts'
import type { EventPublisher } from '../../webhooks/dependencies.ts'
import { createWebhookDirectory } from '../../webhooks/directory.ts'
import { commandActor, createDeps, toPublicId, withConversations, withDatabase } from '../installation.ts'
import { print, printNotice, printResult, renderTable, renderTime, toVisible } from '../output.ts'
import { runInterruptible } from '../signals.ts'

interface FilterOptions {
  /** The parent key, or its id; undefined for all keys. */
  readonly key?: string
  readonly agent?: string
  /** Unix seconds, inclusive. */
  readonly from?: number
  /** Unix seconds, exclusive. */
  readonly to?: number
  readonly search?: string
  readonly channel?: string
  readonly mode?: string
  readonly assignee?: string
  readonly visitor?: string
  readonly tag?: string
  readonly rating?: string
  readonly reason?: string
  readonly status?: string
  readonly error?: string
  readonly tool?: string
  readonly model?: string
  readonly agentVersion?: number
  readonly minTokens?: number
  readonly limit?: number
  readonly json?: boolean
}

const LISTED = 50
const SHOWN_TURNS = 20

export function list({ limit = LISTED, json = false, ...filter }: FilterOptions): Promise<void> {
  return withStorage(async ({ storage }) => {
    const database = await storage.find()
    const page = { limit: limit + 1, after: undefined, order: 'desc' } as const
    const rows =
      database === undefined ? [] : await listAnyConversations(database.read, toFilter(filter), page)
    const listed = rows.slice(0, limit)
    if (json) print(JSON.stringify(await renderRows(database, listed)))
    else print(renderTable(headings, listed.map(toCells)))
    if (rows.length > limit) printNotice(`There are more conversations; the list ends after ${limit}.`)
  })
}

const headings = ['ID', 'KEY', 'AGENT', 'TURNS', 'CREATED', 'LAST ACTIVITY', 'EXPIRES']

function toCells(row: ConversationRow): string[] {
  const times = [row.created_at, row.last_at, row.expires_at].map(renderTime)
  return [row.id, row.tenant, row.agent_id || '-', String(row.turns), ...times]
}

/** Renders conversations as in the API, and adds the id of the parent key that owns each one. */
async function renderRows(database: ConversationDatabase | undefined, rows: readonly ConversationRow[]) {
  if (database === undefined) return []
  const rendered = await renderConversations(database, rows)
  return rendered.map((conversation, index) => ({ ...conversation, key_id: rows[index]?.tenant }))
}

export function show(
  id: string,
  { limit = SHOWN_TURNS, json = false }: Pick<FilterOptions, 'limit' | 'json'>,
): Promise<void> {
  return withStorage(async ({ deps, storage, data }) => {
    const { database, row } = await findOne(storage, id)
    await recordAudit(deps, commandActor(), {
      action: 'conversation.read',
      target: { kind: 'conversation', id },
      tenantId: row.tenant,
      details: { agent_id: row.agent_id || null },
    })
    const { lines, hasMore } = await readLastLines({ database, data }, id, limit)
    const [conversation] = await renderRows(database, [row])
    if (json) return print(JSON.stringify({ ...conversation, lines, has_more: hasMore }))
    print([renderTable(headings, [toCells(row)]), ...lines.flatMap(renderLine)].join('\n'))
    if (hasMore) printNotice(`There are earlier turns; this shows the last ${limit}.`)
  })
}

function renderLine(line: ConversationLine): string[] {
  return [`\n${renderHead(line)}`, ...line.items.map((item) => toVisibleText(renderItem(item)))]
}

function renderHead(line: ConversationLine): string {
  if (line.object === 'conversation.items') return 'Without a turn'
  const { number, status, model, created_at: createdAt } = line
  return `Turn ${number}, ${renderTime(createdAt)}, ${model ?? 'no model'}, ${status}`
}

function renderItem(item: ConversationLine['items'][number]): string {
  if (item.type === 'function_call') return `call: ${item.name}(${item.arguments})`
  if (item.type === 'function_call_output') return `result: ${toText(item.output)}`
  if (item.type === 'reasoning') return `reasoning: ${toText(item.summary)}`
  return `${nameAuthor(item)}: ${toText(item.content)}`
}

function nameAuthor({ role, parley }: ConversationLine['items'][number]): string {
  if (parley?.author === 'service') return 'service'
  if (parley?.author !== 'person') return String(role)
  return parley.name == null ? 'person' : `person (${parley.name})`
}

function toText(content: unknown): string {
  if (!Array.isArray(content)) return String(content ?? '')
  return content.map((part) => (typeof part?.text === 'string' ? part.text : `[${part?.type}]`)).join(' ')
}

function toVisibleText(text: string): string {
  return text.split('\n').map(toVisible).join('\n')
}

/** Prints one line of JSON for each turn, and reads only as fast as the output is written. */
export function exportAll({ limit, json: _json, ...filter }: FilterOptions): Promise<void> {
  return withStorage(async ({ deps, storage, data }) => {
    const { tenantId, search, ...selected } = toFilter(filter)
    await recordAudit(deps, commandActor(), {
      action: 'conversation.export',
      target: { kind: 'key', id: tenantId ?? 'all' },
      tenantId: tenantId ?? null,
      // A search text can contain personal data.
      details: { ...selected, has_search: search !== undefined, limit },
    })
    const database = await storage.find()
    async function* renderLines(): AsyncGenerator<string, void, void> {
      if (database === undefined) return yield `${JSON.stringify({ object: 'export.end', turns: 0 })}\n`
      for await (const line of exportTurns({ database, data }, toFilter(filter), limit))
        yield `${JSON.stringify(line)}\n`
    }
    await runInterruptible((signal) =>
      pipeline(Readable.from(renderLines(), { highWaterMark: 1 }), process.stdout, { end: false, signal }),
    )
  })
}

export function remove(id: string, { yes, json = false }: { yes?: boolean; json?: boolean }): Promise<void> {
  return withStorage(async ({ deps, storage, data, webhooks, forgetSpending }) => {
    const { database, row } = await findOne(storage, id)
    if (!yes) {
      throw new StartupError(
        `This deletes the conversation ${id} with its ${row.turns} turns and cannot be undone. Add --yes to confirm.`,
      )
    }
    await deleteAnyConversation({ ...deps, data, webhooks, forgetSpending }, commandActor(), database, row)
    printResult(json, { id, deleted: true }, `deleted ${id}`)
  })
}

/** Runs the maintenance that a server runs every ten minutes. */
export function prune(isJson: boolean): Promise<void> {
  return withStorage(async ({ deps, config, storage, data, webhooks, forgetSpending }) => {
    const { conversations, eventLogs, idempotencyKeys } = await maintainConversations({
      config,
      clock: deps.clock,
      log: createLog(config),
      ...{ storage, data, webhooks, forgetSpending },
      findAgentRetention: (ids) => listRetention(deps, ids),
      onExpired: (counts) => recordExpiry(deps, commandActor(), counts),
    })
    const counts = { conversations, event_logs: eventLogs, idempotency_keys: idempotencyKeys }
    const text = `deleted ${conversations} conversations and the events of ${eventLogs} turns; freed ${idempotencyKeys} idempotency keys`
    printResult(isJson, counts, text)
  })
}

/** Rebuilds the search index, for example for conversations that an earlier version stored. */
export function reindex(isJson: boolean): Promise<void> {
  return withStorage(async ({ storage }) => {
    const database = await storage.find()
    const items = database === undefined ? 0 : await rebuildIndex(database.write)
    printResult(isJson, { items }, `indexed ${items} messages`)
  })
}

interface Access {
  readonly deps: ReturnType<typeof createDeps>
  readonly config: Config
  readonly storage: ConversationStorage
  readonly data: ItemData
  /** Stores events, which running servers deliver. */
  readonly webhooks: EventPublisher
  readonly forgetSpending: ForgetSpending
}

function withStorage(run: (access: Access) => Promise<void>): Promise<void> {
  return withDatabase((db, config, clock) =>
    withConversations({ db, config }, (storage, data) => {
      const deps = createDeps(db, clock)
      const directory = createWebhookDirectory({ ...deps, storage, config, onPrepared() {} })
      const forgetSpending = createForgetSpending(db, () => loadSealer(config, deps))
      const webhooks = { find: directory.find, wake() {} }
      return run({ deps, config, storage, data, webhooks, forgetSpending })
    }),
  )
}

/** @throws StartupError for an invalid option */
function toFilter({
  key,
  search,
  minTokens,
  agentVersion,
  ...rest
}: Omit<FilterOptions, 'limit' | 'json'>): ConversationFilter {
  const tenantId = key === undefined ? undefined : toPublicId(key)
  try {
    return readFilter(tenantId, { ...rest, q: search, min_tokens: minTokens, version: agentVersion })
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    const [name, ...problem] = error.message.split(': ')
    const option = { q: 'search', min_tokens: 'min-tokens', version: 'agent-version' }[String(name)] ?? name
    throw new StartupError(`--${option}: ${problem.join(': ')}`)
  }
}

/** @throws StartupError if the conversation does not exist */
async function findOne(
  storage: ConversationStorage,
  id: string,
): Promise<{ database: ConversationDatabase; row: ConversationRow }> {
  const database = await storage.find()
  const row = database && (await findAnyConversation(database.read, id))
  if (database !== undefined && row !== undefined) return { database, row }
  throw new StartupError(`There is no conversation ${id}; \`parley conversations list\` shows the ids.`)
}
