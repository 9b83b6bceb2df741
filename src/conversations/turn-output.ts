/** Builds a turn's items from its log; repeated calls return the same items. */
import { createHash } from 'node:crypto'
import { parseJson } from '../lib/formats/json.ts'
import { newId, type Random } from '../lib/ids.ts'
import type { Usage } from '../providers/chat-api.ts'
import { type ChatPiece, callsOf, partsOf, toPiece } from './chat-piece.ts'
import type { NewItem } from './item-store.ts'
import { type OnEvent, Output } from './output.ts'
import type { OutputItem } from './response-schema.ts'
import { type LogEntry, SegmentCursor } from './turns/segments.ts'

const ID_LENGTH = 24

/** Creates item ids that depend only on the turn, so that a replay on any replica has the same ids. */
export function createItemIds(turnId: string): (prefix: string) => string {
  let count = 0
  const random: Random = (bytes) =>
    createHash('sha256').update(`${turnId}:${count++}`).digest().subarray(0, bytes)
  return (prefix) => newId(prefix, ID_LENGTH, random)
}

/**
 * The last `step` entry of a turn. Without `interruption` and `failure`, the model finished. With both, the
 * model failed after it had produced some output, which another turn can continue.
 */
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

export function endOf({ kind, bytes }: LogEntry): LoggedEnd | undefined {
  const step: LoggedStep | LoggedEnd | undefined = kind === 'step' ? JSON.parse(bytes.toString()) : undefined
  return step?.type === 'ended' ? step : undefined
}

/** A call to a server tool, or its result, in a `step` entry. */
export type LoggedStep =
  | {
      readonly type: 'tool_call'
      readonly call_id: string
      readonly name: string
      readonly arguments: string
    }
  | {
      readonly type: 'tool_result'
      readonly call_id: string
      readonly content: string
      /**
       * Set if the result is stored as a blob; `content` is then its mark. Bytes by which the JSON text would
       * be longer with the result instead of the mark.
       */
      readonly data_bytes?: number
    }

export interface TurnOutput {
  readonly items: readonly NewItem[]
  /** The model's finish reason; undefined if the answer was interrupted. */
  readonly finish: string | undefined
  readonly usage: Usage | undefined
  /** The number of entries. */
  readonly count: number
  /** Unix seconds, from the last entry. */
  readonly endedAt: number | undefined
}

const noEvents: OnEvent = () => {}

/**
 * Returns a turn's items: server tool calls with their results, then the answer. `segments` contains the
 * turn's whole log.
 */
export function renderOutput(turnId: string, segments: Iterable<Uint8Array>): TurnOutput {
  const reader = new OutputReader(turnId)
  for (const segment of segments) reader.take(segment)
  return reader.end()
}

/**
 * Shared by the segments of all turns, because V8 collects garbage more often when buffers take more memory.
 * The contents are valid only while one segment is read.
 */
const memory = { entries: Buffer.alloc(256 * 1024), text: Buffer.alloc(256 * 1024 + 2) }

class OutputReader {
  private readonly newToolId: (step: LoggedStep) => string
  private readonly output: Output
  private readonly toolItems: NewItem[] = []
  private count = 0
  private endedAt: number | undefined
  private finish: string | undefined
  private usage: Usage | undefined

  constructor(turnId: string) {
    this.newToolId = createToolItemIds(turnId)
    this.output = new Output(createItemIds(turnId), noEvents)
  }

  take(segment: Uint8Array): void {
    const cursor = new SegmentCursor(segment, memory.entries)
    const plain = new PlainEvents(cursor)
    while (cursor.next()) {
      this.count += 1
      if (plain.take()) continue
      this.addText(plain.end())
      const { kind, bytes, from, to } = cursor
      this.takeEntry({ kind, bytes: bytes.subarray(from, to) })
      plain.learn()
    }
    this.addText(plain.end())
  }

  end(): TurnOutput {
    const { output, toolItems, finish, usage, count, endedAt } = this
    const isCutOff = finish === undefined || finish === 'length' || finish === 'content_filter'
    // An answer that was interrupted before its first part has no message.
    if (!isCutOff || output.items.length > 0) output.close(isCutOff)
    return { items: [...toolItems, ...output.items.map(toNewItem)], finish, usage, count, endedAt }
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
      if (step.type === 'ended') this.endedAt = step.at
      else this.toolItems.push(toToolItem(step, this.newToolId))
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

/**
 * Matches an event with a single text. The groups are the bytes before the text, its field, and the bytes
 * after it.
 */
const PLAIN_EVENT =
  /^(data: ?\{[^{}[\]]*"choices": ?\[\{"index": ?0, ?"delta": ?\{"(content|reasoning_content|reasoning)": ?")(?:[^"\\]|\\.)*("\}(?:, ?"logprobs": ?null)?, ?"finish_reason": ?null\}\](?:, ?"usage": ?null)?\}\n\n)$/

const QUOTE = 0x22

interface PlainText {
  /** `content`, `reasoning_content` or `reasoning`. */
  readonly field: string
  readonly text: string
}

/**
 * Joins the texts of consecutive events that are otherwise equal. These are almost all events of a stream,
 * and parsing each of them would be the largest cost of storing a turn.
 */
class PlainEvents {
  private readonly cursor: SegmentCursor
  /** Number of bytes before and after the text of the previous event; 0 if that event was not plain. */
  private headBytes = 0
  private tailBytes = 0
  private field = ''
  private readonly joined: Buffer
  private at = 0

  constructor(cursor: SegmentCursor) {
    this.cursor = cursor
    const size = cursor.bytes.length + 2
    this.joined = size > memory.text.length ? Buffer.allocUnsafe(size) : memory.text
  }

  /**
   * Adds the text of the current event. Returns false if the event is not plain; the caller must then parse
   * it.
   */
  take(): boolean {
    const { bytes, from, to, sharedStart, sharedEnd, kind } = this.cursor
    const { headBytes, tailBytes } = this
    // If the event equals the previous one, all of it counts as shared start and nothing as shared end.
    const hasTail = sharedEnd >= tailBytes || sharedStart === to - from
    if (headBytes === 0 || kind !== 'chat' || sharedStart < headBytes || !hasTail) return false
    const textFrom = from + headBytes
    const textTo = to - tailBytes
    const first = bytes[textFrom] as number
    // A provider may split a character between events; joining the two halves would change the text.
    if (textTo < textFrom || (first >= 0x80 && first < 0xc0)) return false
    const { joined, at } = this
    for (let index = textFrom; index < textTo; index++) {
      const byte = bytes[index] as number
      // A quotation mark may end the text early, so the caller parses such events, even if it is escaped.
      if (byte === QUOTE) return false
      joined[at + 1 + index - textFrom] = byte
    }
    this.at = at + textTo - textFrom
    return true
  }

  /** Uses the current event as the pattern for later events if its text is its only content. */
  learn(): void {
    const { bytes, from, to } = this.cursor
    const [, head, field, tail] = PLAIN_EVENT.exec(bytes.toString('latin1', from, to)) ?? []
    this.headBytes = head?.length ?? 0
    this.tailBytes = tail?.length ?? 0
    this.field = field ?? ''
  }

  /** Returns the text of the events since the last call. */
  end(): PlainText {
    const { field, joined, at } = this
    if (at === 0) return { field, text: '' }
    joined[0] = QUOTE
    joined[at + 1] = QUOTE
    this.at = 0
    return { field, text: JSON.parse(joined.toString('utf8', 0, at + 2)) }
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
    // Arguments that are not stored consist of `{}` and one space for each further event.
    body: isPadded(item) ? { ...item, arguments: '{}' } : item,
    isForVisitor: item.type !== 'reasoning',
  }
}

function isPadded(item: OutputItem): boolean {
  return item.type === 'function_call' && /^\{\} +$/.test(item.arguments)
}

/** Creates the item ids of a turn's server tools. Each call returns the next id. */
export function createToolItemIds(turnId: string): (step: LoggedStep) => string {
  const newItemId = createItemIds(`${turnId}:tools`)
  return ({ type }) => newItemId(type === 'tool_call' ? 'fc_' : 'fco_')
}

function toToolItem(step: LoggedStep, newToolId: (step: LoggedStep) => string): NewItem {
  const shared = { role: null, status: 'completed', isForVisitor: false } as const
  const id = newToolId(step)
  if (step.type === 'tool_call') {
    const { call_id, name, arguments: text } = step
    const body = { type: 'function_call', id, call_id, name, arguments: text, status: 'completed' }
    return { ...shared, id, type: 'function_call', author: 'model', body }
  }
  const { call_id, content, data_bytes: dataBytes = 0 } = step
  const body = { type: 'function_call_output', id, call_id, output: content, status: 'completed' }
  return { ...shared, id, type: 'function_call_output', author: 'tool', body, dataBytes }
}
