/** Creates the items for mode changes and for messages without a turn. */
import { newId, type Random } from '../../lib/ids.ts'
import type { ItemRow, NewItem } from '../item-store.ts'
import type { ConversationRow } from '../store.ts'

const ID_LENGTH = 24
const MARK = '[Sent by the service, not by the user]'

export type Mode = ConversationRow['mode']

export interface ModeEntry {
  readonly mode: Mode
  /** Unix seconds. */
  readonly since: number
  /** The person who answers, as owners see them; null unless the mode is `person`. */
  readonly assignee: string | null
  /** The person's name, as visitors see it; null if they see none. */
  readonly name: string | null
  /** Why a person was asked for. */
  readonly reason: string | null
}

/** The details of a change that the model reads; undefined if the model does not read the change. */
export type ForModel = { readonly handedOverAt: number; readonly isAnswered: boolean } | undefined

/** Creates the item of a change. Feeds show it as a `conversation.mode` event. */
export function toModeItem(entry: ModeEntry, forModel: ForModel, random: Random): NewItem {
  const id = newId('msg_', ID_LENGTH, random)
  const text = forModel === undefined ? describe(entry) : describeToModel(entry.since, forModel)
  return {
    ...{ id, type: 'message', role: 'user', author: 'service', status: 'completed' },
    body: {
      ...{ type: 'message', id, role: 'user', status: 'completed' },
      content: [{ type: 'input_text', text: `${MARK} ${text}` }],
      handover: entry,
    },
    isForVisitor: false,
    isForModel: forModel !== undefined,
  }
}

function describe({ mode, since, reason }: ModeEntry): string {
  const at = renderTime(since)
  if (mode === 'person') return `A person took the conversation over at ${at}.`
  const why = reason === null ? '' : ` Reason: ${reason}`
  return `A person was asked for at ${at}.${why}`
}

function describeToModel(since: number, { handedOverAt, isAnswered }: NonNullable<ForModel>): string {
  const times = `The conversation was handed over at ${renderTime(handedOverAt)} and handed back at ${renderTime(since)}.`
  return isAnswered
    ? `${times} You answer again. Take into account what the person has written, and answer what is still open.`
    : `${times} No person has answered. You answer again.`
}

/** Renders Unix seconds in ISO 8601, such as `2026-11-24T10:00:00Z`. */
export function renderTime(seconds: number): string {
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`
}

/** Returns the change that an item records; undefined for other items. */
export function findModeEntry({ author, type, body }: Pick<ItemRow, 'author' | 'type' | 'body'>) {
  if (author !== 'service' || type !== 'message') return undefined
  return (JSON.parse(body) as { readonly handover?: ModeEntry }).handover
}

/** Creates a text message of a visitor, a person or the service. */
export function toTextItem(
  { author, text, name, clientId }: MessageText,
  random: Random,
): NewItem & { readonly clientId?: string } {
  const id = newId('msg_', ID_LENGTH, random)
  const role = author === 'visitor' ? 'user' : 'assistant'
  const content =
    role === 'user'
      ? { type: 'input_text', text }
      : { type: 'output_text', text, annotations: [], logprobs: [] }
  return {
    ...{ id, type: 'message', role, author, status: 'completed' },
    body: { type: 'message', id, role, status: 'completed', content: [content] },
    isForVisitor: true,
    authorName: name ?? null,
    ...(clientId !== undefined && { clientId }),
  }
}

interface MessageText {
  readonly author: 'visitor' | 'person' | 'service'
  readonly text: string
  readonly name?: string | null
  readonly clientId?: string | undefined
}
