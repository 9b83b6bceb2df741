/** Renders the items that a turn produced from its log, always in the same way. */
import { createHash } from 'node:crypto'
import { parseJson } from '../lib/formats/json.ts'
import { newId, type Random } from '../lib/ids.ts'
import type { Usage } from '../providers/chat-api.ts'
import { type ChatPiece, callsOf, partsOf, toPiece } from './chat-piece.ts'
import type { NewItem } from './item-store.ts'
import { type OnEvent, Output } from './output.ts'
import type { OutputItem } from './response-schema.ts'
import { entriesOf, type LogEntry, type LogRun, toBuffer } from './turns/segments.ts'

const ID_LENGTH = 24

/** Creates ids that depend on the turn only, so that a replay on any replica names the same items. */
export function createItemIds(turnId: string): (prefix: string) => string {
  let count = 0
  const random: Random = (bytes) =>
    createHash('sha256').update(`${turnId}:${count++}`).digest().subarray(0, bytes)
  return (prefix) => newId(prefix, ID_LENGTH, random)
}

/** The last `step` entry of a turn. Without `interruption` and `failure`, the model finished. */
export interface LoggedEnd {
  readonly type: 'ended'
  /** Unix seconds. */
  readonly at: number
  readonly interruption?: 'cancelled' | 'interrupted'
  readonly failure?: { readonly code: string; readonly message: string }
}

export function toEndEntry(end: Omit<LoggedEnd, 'type'>): LogEntry {
  return { kind: 'step', bytes: Buffer.from(JSON.stringify({ type: 'ended', ...end })) }
}

/** Returns how the turn ended if the entry says so. */
export function endOf({ kind, bytes }: LogEntry): LoggedEnd | undefined {
  const step: LoggedStep | LoggedEnd | undefined = kind === 'step' ? JSON.parse(bytes.toString()) : undefined
  return step?.type === 'ended' ? step : undefined
}

/** A call of a server tool, or its result, as `step` entries hold them. */
export type LoggedStep =
  | {
      readonly type: 'tool_call'
      readonly call_id: string
      readonly name: string
      readonly arguments: string
    }
  | { readonly type: 'tool_result'; readonly call_id: string; readonly content: string }

export interface TurnOutput {
  readonly items: readonly NewItem[]
  /** The model's finish reason; undefined if the answer broke off. */
  readonly finish: string | undefined
  readonly usage: Usage | undefined
}

const noEvents: OnEvent = () => {}

/** The items of a turn: calls of server tools with their results, then the answer. */
export function renderOutput(turnId: string, runs: Iterable<LogRun>): TurnOutput {
  const reader = new OutputReader(turnId)
  for (const run of runs) reader.take(run)
  return reader.end()
}

class OutputReader {
  private readonly newToolId: (prefix: string) => string
  private readonly output: Output
  private readonly toolItems: NewItem[] = []
  private finish: string | undefined
  private usage: Usage | undefined

  constructor(turnId: string) {
    this.newToolId = createItemIds(`${turnId}:tools`)
    this.output = new Output(createItemIds(turnId), noEvents)
  }

  take(run: LogRun): void {
    const { kind } = run
    if (kind === 'chat') this.takeChat(run)
    else for (const entry of entriesOf(run)) this.takeEntry(entry)
  }

  end(): TurnOutput {
    const { output, toolItems, finish, usage } = this
    const isCutOff = finish === undefined || finish === 'length' || finish === 'content_filter'
    // An answer that broke off before its first part has no message.
    if (!isCutOff || output.items.length > 0) output.close(isCutOff)
    return { items: [...toolItems, ...output.items.map(toNewItem)], finish, usage }
  }

  /** Parses only the text of an event that differs from the one before it in nothing else (`PlainEvents`). */
  private takeChat(run: LogRun): void {
    const source = toBuffer(run.bytes).toString('latin1')
    const plain = new PlainEvents(source)
    let start = 0
    for (const end of run.ends) {
      if (!plain.add(start, end)) {
        this.addText(plain.take())
        this.takeEntry({ kind: 'chat', bytes: toBuffer(run.bytes).subarray(start, end) })
        plain.learn(start, end)
      }
      start = end
    }
    this.addText(plain.take())
  }

  private addText({ field, text }: PlainText): void {
    if (text === '') return
    if (field === 'content') this.output.addPart({ type: 'output_text', text, annotations: [], logprobs: [] })
    else this.output.addPart({ type: 'reasoning_text', text })
  }

  private takeEntry(entry: LogEntry): void {
    const { output } = this
    if (entry.kind === 'step') {
      const step: LoggedStep | LoggedEnd = JSON.parse(entry.bytes.toString())
      if (step.type !== 'ended') this.toolItems.push(toToolItem(step, this.newToolId))
    }
    const piece = pieceOf(entry)
    const choice = piece?.choices[0]
    if (piece?.usage) this.usage = piece.usage
    if (choice === undefined) return
    for (const part of partsOf(choice)) output.addPart(part)
    for (const call of callsOf(choice)) output.addCall(call)
    this.finish = choice.finish_reason ?? this.finish
  }
}

/** An event with one text: the bytes before it, which end with its field, the text as JSON, and the bytes after it. */
const PLAIN_EVENT =
  /^(data: ?\{[^{}[\]]*"choices": ?\[\{"index": ?0, ?"delta": ?\{"(content|reasoning_content|reasoning)": ?")(?:[^"\\]|\\.)*("\}(?:, ?"logprobs": ?null)?, ?"finish_reason": ?null\}\](?:, ?"usage": ?null)?\}\n\n)$/

interface PlainText {
  /** `content`, or one of the two names of reasoning. */
  readonly field: string
  readonly text: string
}

/**
 * Joins the texts of consecutive events that are otherwise equal. These are almost all events of a stream, and
 * parsing each of them would be the largest cost of storing a turn. `source` is Latin-1, so that its offsets are those
 * of the bytes.
 */
class PlainEvents {
  private readonly source: string
  private head: string | undefined
  private tail = ''
  private field = ''
  private joined = ''

  constructor(source: string) {
    this.source = source
  }

  /** Returns false if the event has to be parsed. */
  add(start: number, end: number): boolean {
    const { source, head, tail } = this
    if (head === undefined || !source.startsWith(head, start)) return false
    const textStart = start + head.length
    const textEnd = end - tail.length
    // The tail starts with the quotation mark after the text, so a text with another one has to be parsed.
    if (source.indexOf('"', textStart) !== textEnd || !source.startsWith(tail, textEnd)) return false
    // The rest of a character that a provider has split would join with its start.
    const first = source.charCodeAt(textStart)
    if (first >= 0x80 && first < 0xc0) return false
    this.joined += source.slice(textStart, textEnd)
    return true
  }

  /** Uses an event as the pattern of those after it, if it has no other content than its text. */
  learn(start: number, end: number): void {
    const [, head, field, tail] = PLAIN_EVENT.exec(this.source.slice(start, end)) ?? []
    if (head === undefined || field === undefined || tail === undefined) return
    this.head = head
    this.field = field
    this.tail = tail
  }

  /** Returns the text since the last call. */
  take(): PlainText {
    const { field, joined } = this
    this.joined = ''
    const text: string = joined === '' ? '' : JSON.parse(Buffer.from(`"${joined}"`, 'latin1').toString())
    return { field, text }
  }
}

/** The chat chunk or completion in an entry; undefined for other entries. */
export function pieceOf({ kind, bytes }: LogEntry): ChatPiece | undefined {
  if (kind === 'completion') return toPiece(JSON.parse(bytes.toString()))
  if (kind !== 'chat') return undefined
  const text = bytes.toString()
  return parseJson(text.slice(text.indexOf('{'))) as unknown as ChatPiece
}

function toNewItem(item: OutputItem): NewItem {
  return {
    id: item.id,
    type: item.type,
    role: item.type === 'message' ? item.role : null,
    author: 'model',
    status: item.status === 'completed' ? 'completed' : 'incomplete',
    body: item,
    isForVisitor: item.type !== 'reasoning',
  }
}

function toToolItem(step: LoggedStep, newItemId: (prefix: string) => string): NewItem {
  const shared = { role: null, status: 'completed', isForVisitor: false } as const
  if (step.type === 'tool_call') {
    const { call_id, name, arguments: text } = step
    const id = newItemId('fc_')
    const body = { type: 'function_call', id, call_id, name, arguments: text, status: 'completed' }
    return { ...shared, id, type: 'function_call', author: 'model', body }
  }
  const { call_id, content } = step
  const id = newItemId('fco_')
  const body = { type: 'function_call_output', id, call_id, output: content, status: 'completed' }
  return { ...shared, id, type: 'function_call_output', author: 'tool', body }
}
