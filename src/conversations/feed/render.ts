/** Renders items, turns and log entries for a conversation's feed. */
import { isJsonObject } from '../../lib/formats/json.ts'
import { callsOf, partsOf } from '../chat-piece.ts'
import type { ModeEntry } from '../handover/mode-items.ts'
import type { ItemRow } from '../item-store.ts'
import type { TurnRow } from '../store.ts'
import { pieceOf } from '../turn-output.ts'
import type { LogEntry } from '../turns/segments.ts'
import { parseUpload } from './upload-text.ts'

type VisibleType = 'message' | 'function_call' | 'function_call_output'

/** An item that a visitor receives. Owners also receive items of the type `reasoning`. */
export interface ShownItem<Type extends ItemRow['type'] = VisibleType> {
  readonly id: string
  readonly turn_id: string | null
  readonly type: Type
  readonly author: ItemRow['author']
  /** The name of the person who wrote the item; absent for other authors. */
  readonly author_name?: string | null
  readonly status: ItemRow['status']
  readonly client_id: string | null
  readonly created_at: number
  readonly text?: string
  readonly attachments?: ShownAttachment[]
  readonly call_id?: string
  readonly name?: string
  readonly arguments?: string
  readonly output?: string
}

export interface ShownAttachment {
  readonly type: 'image' | 'pdf' | 'text' | 'file'
  readonly name: string | null
  /** Index of the part in the item's content. */
  readonly part: number
  /** The artifact of a `file`, and its size. */
  readonly artifact_id?: string
  readonly bytes?: number
}

export interface ShownTurn {
  readonly id: string
  readonly status: TurnRow['status']
  readonly reason: string | null
  readonly error_code: string | null
}

/** Text and tool calls that one log entry adds to an answer. */
export interface ShownDelta {
  readonly text?: string
  readonly calls?: { index: number; call_id?: string; name?: string; arguments?: string }[]
}

/** Whether a visitor may see an item; owners see all. */
export function isForVisitor({ for_visitor: forVisitor, type }: ItemRow): boolean {
  return forVisitor === 1 && type !== 'reasoning'
}

export function toShownItem(row: ItemRow): ShownItem<ItemRow['type']> {
  const { id, turn_id, type, author, author_name, status, client_id, created_at } = row
  const body = JSON.parse(row.body)
  const name = author === 'person' ? { author_name } : {}
  return { id, turn_id, type, author, ...name, status, client_id, created_at, ...contentOf(type, body) }
}

/**
 * Renders an item for which `isForVisitor` is true. `showsNames` is whether visitors see the names of people.
 */
export function toVisitorItem(row: ItemRow, showsNames: boolean): ShownItem {
  return toShownItem(showsNames ? row : { ...row, author_name: null }) as ShownItem
}

/** A change of who answers; visitors do not receive `assignee` and `reason`. */
export interface ShownMode {
  readonly mode: ModeEntry['mode']
  readonly since: number
  readonly name: string | null
  readonly assignee?: string | null
  readonly reason?: string | null
}

export function toShownMode(
  entry: ModeEntry,
  visitor: { readonly showsNames: boolean } | undefined,
): ShownMode {
  if (visitor !== undefined) return toVisitorMode(entry, visitor.showsNames)
  return { ...toVisitorMode(entry, true), assignee: entry.assignee, reason: entry.reason }
}

/** Renders a change for visitors; the name is null unless `showsNames` is true. */
export function toVisitorMode({ mode, since, name }: ModeEntry, showsNames: boolean) {
  return { mode, since, name: showsNames ? name : null }
}

function contentOf(type: ItemRow['type'], body: Record<string, unknown>) {
  switch (type) {
    case 'message':
      return renderMessage(body.content)
    case 'reasoning':
      return { text: [textOf(body.summary, ''), textOf(body.content, '')].join('') }
    case 'function_call': {
      const { call_id, name, arguments: given } = body
      return { call_id: String(call_id), name: String(name), arguments: String(given ?? '') }
    }
    case 'function_call_output':
      return { call_id: String(body.call_id), output: textOf(body.output, '') }
  }
}

function renderMessage(content: unknown) {
  if (!Array.isArray(content)) return { text: textOf(content, '\n') }
  const attachments = content.flatMap((part, index) => toAttachment(part, index) ?? [])
  if (attachments.length === 0) return { text: textOf(content, '\n') }
  const attached = new Set(attachments.map(({ part }) => part))
  const said = content.filter((_, index) => !attached.has(index))
  return { text: textOf(said, '\n'), attachments }
}

/** Returns whether a part of a message's content is an attachment. */
export function isAttachment(part: unknown): boolean {
  return toAttachment(part, 0) !== undefined
}

const attachedText = /^\[Attached file: ([^\]\n]+)\]\n/

function toAttachment(part: unknown, index: number): ShownAttachment | undefined {
  if (!isJsonObject(part)) return undefined
  if (part.type === 'input_image') return { type: 'image', name: null, part: index }
  if (part.type === 'input_file') {
    const name = typeof part.filename === 'string' ? part.filename : null
    return { type: 'pdf', name, part: index }
  }
  const upload = part.type === 'input_text' ? parseUpload(String(part.text)) : undefined
  if (upload !== undefined) {
    const { name, artifactId, sizeBytes } = upload
    return { type: 'file', name, part: index, artifact_id: artifactId, bytes: sizeBytes }
  }
  const name = part.type === 'input_text' ? attachedText.exec(String(part.text))?.[1] : undefined
  return name === undefined ? undefined : { type: 'text', name, part: index }
}

/**
 * Joins the text of a message's parts. A model's parts form one continuous text and are joined without the
 * separator.
 */
function textOf(content: unknown, separator: string): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  const parts = content.filter(isJsonObject)
  const isModels = parts.some(({ type }) => type === 'output_text' || type === 'refusal')
  const texts = parts.map(({ text, refusal }) => text ?? refusal).filter((text) => typeof text === 'string')
  return texts.join(isModels ? '' : separator)
}

export function toShownTurn({ id, status, reason, error_code }: TurnRow): ShownTurn {
  return { id, status, reason, error_code }
}

/** Renders a turn as running, even if it has ended, so that a replay has the same events. */
export function toStartedTurn({ id }: TurnRow): ShownTurn {
  return { id, status: 'in_progress', reason: null, error_code: null }
}

/** Returns the text and calls in an entry; undefined if it contains neither. */
export function toShownDelta(entry: LogEntry): ShownDelta | undefined {
  const choice = pieceOf(entry)?.choices[0]
  if (choice === undefined) return undefined
  const text = partsOf(choice)
    .map((part) => (part.type === 'output_text' ? part.text : part.type === 'refusal' ? part.refusal : ''))
    .join('')
  const calls = callsOf(choice).map(({ index, id, name, arguments: given }) => ({
    index,
    ...(id !== undefined && { call_id: id }),
    ...(name !== undefined && { name }),
    ...(given !== '' && { arguments: given }),
  }))
  if (text === '' && calls.length === 0) return undefined
  return { ...(text !== '' && { text }), ...(calls.length > 0 && { calls }) }
}
