/** Groups the items of a conversation by turn, and reads their texts. */

import { renderSize } from '../../format.ts'
import { t } from '../../strings/language.ts'
import type { Item, Turn } from '../queries.ts'

/** The items that one turn, or one run of items outside of a turn, has added to the conversation. */
export interface Entry {
  readonly key: string
  readonly turn: Turn | undefined
  readonly items: readonly Item[]
}

/**
 * Groups the items by turn, in the order of the first item of each group. If all items are loaded, turns
 * without items follow.
 */
export function toEntries(items: readonly Item[], turns: readonly Turn[], isWhole: boolean): Entry[] {
  const groups = new Map<string, Item[]>()
  let outside = ''
  for (const item of items) {
    const turnId = item.parley?.turn_id ?? undefined
    if (turnId !== undefined) outside = ''
    else if (outside === '') outside = item.id
    const key = turnId ?? outside
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  if (isWhole) for (const { id } of turns) if (!groups.has(id)) groups.set(id, [])
  const byId = new Map(turns.map((turn) => [turn.id, turn]))
  return [...groups].map(([key, group]) => ({ key, turn: byId.get(key), items: group }))
}

/** Maps the ids of calls to their results, which may be in a later turn. */
export function findResults(items: readonly Item[]): Map<string, Item> {
  const results = items.filter(({ type }) => type === 'function_call_output')
  return new Map(results.map((item) => [String(item.call_id), item]))
}

/** Returns whether a result is shown with its call. */
export function isShownWithCall(item: Item, items: readonly Item[]): boolean {
  return (
    item.type === 'function_call_output' &&
    items.some(({ type, call_id: callId }) => type === 'function_call' && callId === item.call_id)
  )
}

interface Part {
  readonly type?: unknown
  readonly [field: string]: unknown
}

/** Returns the text of an item's content or output, without its attachments. */
export function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .map((part: Part, index) => {
      if (toAttachment(part, index) !== undefined) return ''
      if (typeof part.text === 'string') return part.text
      if (typeof part.refusal === 'string') return part.refusal
      return t('conversations.unknown', { type: String(part.type ?? 'unknown') })
    })
    .filter((text) => text !== '')
    .join('\n')
}

/** An image or a file in a message. */
export interface Attachment {
  /** Position in the content. */
  readonly part: number
  readonly kind: 'image' | 'file'
  readonly name: string
  /** The size of an upload. */
  readonly detail?: string
  /** The data as a URL, or the path of an upload; undefined if the page may not load it. */
  readonly address?: string | undefined
  /** The content of a text file. */
  readonly text?: string
}

export function attachmentsOf(content: unknown): Attachment[] {
  if (!Array.isArray(content)) return []
  return content.flatMap((part: Part, index) => toAttachment(part, index) ?? [])
}

const attachedText = /^\[Attached file: ([^\]\n]+)\]\n/

const uploadedFile = /^\[Uploaded file: ([^\]\n]+)\]\n(.+)$/

/** Returns the upload that a part of a visitor's message contains; the link needs the owner's session. */
function toUpload(text: string, part: number): Attachment | undefined {
  const [, name = '', json = ''] = uploadedFile.exec(text) ?? []
  try {
    const { artifact_id: id, bytes } = JSON.parse(json)
    if (!/^[0-9a-f-]{36}$/.test(id) || typeof bytes !== 'number') return undefined
    return { part, kind: 'file', name, detail: renderSize(bytes), address: `/artifacts/${id}` }
  } catch {
    return undefined
  }
}

function toAttachment(part: Part, index: number): Attachment | undefined {
  const about = { part: index, name: String(part.filename ?? part.file_id ?? t('conversations.unnamed')) }
  if (part.type === 'input_image')
    return { ...about, kind: 'image', name: t('conversations.image'), address: addressOf(part.image_url) }
  if (part.type === 'input_file') return { ...about, kind: 'file', address: addressOf(part.file_data) }
  const text = typeof part.text === 'string' ? part.text : ''
  const upload = toUpload(text, index)
  if (upload !== undefined) return upload
  const [start = '', name] = attachedText.exec(text) ?? []
  return name === undefined ? undefined : { ...about, kind: 'file', name, text: text.slice(start.length) }
}

/** Returns a data URL of an image or a PDF file. The page loads nothing from other servers. */
function addressOf(value: unknown): string | undefined {
  const isData =
    typeof value === 'string' && /^data:(image\/(png|jpeg|gif|webp)|application\/pdf);/.test(value)
  return isData ? value : undefined
}

/** Indents JSON; returns any other text unchanged. */
export function prettify(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
