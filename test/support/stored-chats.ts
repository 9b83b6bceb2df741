/** Creates agents that store their chats, reads event streams with ids, and searches the data for texts. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sql } from 'kysely'
import { inject, onTestFinished } from 'vitest'
import type { ConversationDb } from '../../src/db/open.ts'
import type { Answer, TestApp } from './app.ts'

export const CHAT = '/v1/chat/completions'

/** A definition of an agent that stores its chats, with further settings under `conversations`. */
export function storingAgent(more: object = {}): string {
  return JSON.stringify({
    name: 'Keeper',
    instructions: 'Answer.',
    conversations: { keep: '30d', ...more },
  })
}

/** An event of a chat stream, as text and with its id. */
export interface SentEvent {
  readonly text: string
  /** Undefined for `[DONE]` and for events of streams that are not stored. */
  readonly id: string | undefined
}

/** Splits a stream into its events, without keep-alive comments. */
export function splitStream(text: string): SentEvent[] {
  return text
    .split(/(?<=\n\n)/)
    .filter((event) => !event.startsWith(':'))
    .map((event) => ({ text: event, id: /^id: (.*)$/m.exec(event)?.[1] }))
}

export interface ChatOptions {
  readonly key?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Additional fields of the request's body. */
  readonly more?: object
  readonly signal?: AbortSignal
}

/** Sends a chat completion request with `text` as the user message, by default with streaming. */
export function sendChat(app: TestApp, text: string, { more, ...options }: ChatOptions): Promise<Answer> {
  const body = { model: 'up-chat', messages: [{ role: 'user', content: text }], stream: true, ...more }
  return app.call('POST', CHAT, { ...options, body })
}

/** Continues a stream after an event. */
export function resume(app: TestApp, key: string, id: string, body: unknown = {}): Promise<Answer> {
  return app.call('POST', CHAT, { key, body, headers: { 'Last-Event-ID': id } })
}

/** A chat stream that a test reads step by step. */
export interface OpenStream {
  readonly headers: Headers
  /** Resolves with the text so far once it contains this number of events. */
  readEvents(count: number): Promise<string>
  /** Resolves with the whole text at the end of the stream. */
  readAll(): Promise<string>
  disconnect(): void
}

/** Starts a chat stream; resolves with the response's headers. */
export async function openStream(
  app: TestApp,
  text: string,
  { key = app.key, headers = {}, more = {} }: Omit<ChatOptions, 'signal'>,
): Promise<OpenStream> {
  const controller = new AbortController()
  onTestFinished(() => controller.abort())
  const response = await fetch(app.url + CHAT, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({
      model: 'up-chat',
      messages: [{ role: 'user', content: text }],
      stream: true,
      ...more,
    }),
    signal: controller.signal,
  })
  const reader = (response.body as ReadableStream<Uint8Array>)
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .getReader()
  let received = ''
  const readUntil = async (isEnough: () => boolean) => {
    while (!isEnough()) {
      const { done, value } = await reader.read()
      if (done) break
      received += value
    }
    return received
  }
  return {
    headers: response.headers,
    readEvents: (count) => readUntil(() => (received.match(/\n\n/g)?.length ?? 0) >= count),
    readAll: () => readUntil(() => false),
    disconnect: () => controller.abort(),
  }
}

/** Opens the connection that writes an app's stored conversations. */
export async function openConversations(app: TestApp): Promise<ConversationDb> {
  return (await app.service.deps.conversations.storage.open()).write
}

/** Lists the bodies of all stored items, oldest first. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into items of every shape
export async function listItems(app: TestApp): Promise<any[]> {
  const db = await openConversations(app)
  const rows = await db.selectFrom('items').select('body').orderBy('n').execute()
  return rows.map(({ body }) => JSON.parse(body))
}

/** Lists the stored turns, oldest first. */
export async function listTurns(app: TestApp) {
  const db = await openConversations(app)
  return db.selectFrom('turns').selectAll().orderBy('created_at').orderBy('number').execute()
}

/** Lists the files, and with PostgreSQL the tables, that contain a text. */
export async function findText(app: TestApp, dataDir: string, text: string): Promise<string[]> {
  const files = await readdir(dataDir, { recursive: true, withFileTypes: true })
  const found: string[] = []
  for (const file of files.filter((entry) => entry.isFile())) {
    const bytes = await readFile(join(file.parentPath, file.name))
    if (bytes.includes(text)) found.push(file.name)
  }
  return inject('database') === 'sqlite' ? found : [...found, ...(await findTables(app, text))]
}

async function findTables(app: TestApp, text: string): Promise<string[]> {
  const db = await openConversations(app)
  const tables = await sql<{ name: string }>`
    select table_name as name from information_schema.tables
    where table_schema = current_schema() and table_type = 'BASE TABLE'`.execute(db)
  const found: string[] = []
  for (const { name } of tables.rows) {
    const { rows } = await sql<{ row: string }>`select t::text as row from ${sql.table(name)} t`.execute(db)
    const spellings = [text, Buffer.from(text).toString('hex')]
    if (rows.some(({ row }) => spellings.some((one) => row.includes(one)))) found.push(name)
  }
  return found
}
