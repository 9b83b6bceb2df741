/** Renders the items that a turn produced from its log, always in the same way. */
import { createHash } from 'node:crypto'
import { parseJson } from '../lib/formats/json.ts'
import { newId, type Random } from '../lib/ids.ts'
import type { Usage } from '../providers/chat-api.ts'
import { type ChatPiece, callsOf, partsOf, toPiece } from './chat-piece.ts'
import type { NewItem } from './item-store.ts'
import { type OnEvent, Output } from './output.ts'
import type { OutputItem } from './response-schema.ts'
import type { LogEntry } from './turns/segments.ts'

const ID_LENGTH = 24

/** Creates item ids that depend only on the turn, so that a replay on any replica has the same ids. */
export function createItemIds(turnId: string): (prefix: string) => string {
  let count = 0
  const random: Random = (bytes) =>
    createHash('sha256').update(`${turnId}:${count++}`).digest().subarray(0, bytes)
  return (prefix) => newId(prefix, ID_LENGTH, random)
}

/**
 * The last `step` entry of a turn. Without `interruption` and `failure`, the model finished. With both, the model
 * failed after it had produced some output, which another turn can continue.
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

/** Returns the turn's end if the entry contains it. */
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
  | { readonly type: 'tool_result'; readonly call_id: string; readonly content: string }

export interface TurnOutput {
  readonly items: readonly NewItem[]
  /** The model's finish reason; undefined if the answer was interrupted. */
  readonly finish: string | undefined
  readonly usage: Usage | undefined
}

const noEvents: OnEvent = () => {}

/** The items of a turn: calls of server tools with their results, then the answer. */
export function renderOutput(turnId: string, entries: readonly LogEntry[]): TurnOutput {
  const ids = createItemIds(turnId)
  const toolIds = createItemIds(`${turnId}:tools`)
  const output = new Output(ids, noEvents)
  const toolItems: NewItem[] = []
  let finish: string | undefined
  let usage: Usage | undefined
  for (const entry of entries) {
    if (entry.kind === 'step') {
      const step: LoggedStep | LoggedEnd = JSON.parse(entry.bytes.toString())
      if (step.type !== 'ended') toolItems.push(toToolItem(step, toolIds))
    }
    const piece = pieceOf(entry)
    const choice = piece?.choices[0]
    if (piece?.usage) usage = piece.usage
    if (choice === undefined) continue
    for (const part of partsOf(choice)) output.addPart(part)
    for (const call of callsOf(choice)) output.addCall(call)
    finish = choice.finish_reason ?? finish
  }
  const isCutOff = finish === undefined || finish === 'length' || finish === 'content_filter'
  // An answer that was interrupted before its first part has no message.
  if (!isCutOff || output.items.length > 0) output.close(isCutOff)
  return { items: [...toolItems, ...output.items.map(toNewItem)], finish, usage }
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
    // Arguments that are not stored end with the spaces that number their events.
    body: isPadded(item) ? { ...item, arguments: '{}' } : item,
    isForVisitor: item.type !== 'reasoning',
  }
}

function isPadded(item: OutputItem): boolean {
  return item.type === 'function_call' && /^\{\} +$/.test(item.arguments)
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
