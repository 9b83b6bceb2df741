/**
 * Converts the messages and items that clients send to conversation items, which have the format of OpenAI's
 * API.
 */
import { newId, type Random } from '../lib/ids.ts'
import type { ChatMessage } from '../providers/chat-api.ts'
import type { ItemRow, NewItem } from './item-store.ts'
import type { ListedItem } from './schema.ts'
import type { TurnPlan } from './turns/acceptance.ts'

/** An item as a later turn sends it to the model. */
export type StoredItem = Readonly<Record<string, unknown>> & { readonly type: string; readonly id: string }

const ID_LENGTH = 24

/**
 * Converts the messages that a chat request adds to the conversation: those after the last assistant message.
 */
export function toChatItems(
  messages: readonly ChatMessage[],
  random: Random,
): Pick<TurnPlan, 'input' | 'inputField'> {
  const first = messages.findLastIndex(({ role }) => role === 'assistant') + 1
  return {
    input: messages.slice(first).map((message) => toItem(message, random)),
    inputField: { name: 'messages', first },
  }
}

function toItem(message: ChatMessage, random: Random): NewItem {
  if (message.role === 'tool') {
    const id = newId('fco_', ID_LENGTH, random)
    const { tool_call_id: call_id, content } = message
    return {
      ...{ id, type: 'function_call_output', role: null, author: 'page', status: 'completed' },
      body: { type: 'function_call_output', id, call_id, output: textOf(content), status: 'completed' },
      isForVisitor: false,
    }
  }
  const role = message.role === 'function' ? 'user' : message.role
  const id = newId('msg_', ID_LENGTH, random)
  return {
    ...{ id, type: 'message', role, status: 'completed' },
    author: role === 'user' ? 'visitor' : 'page',
    body: { type: 'message', id, role, status: 'completed', content: toParts(message.content) },
    isForVisitor: role === 'user',
  }
}

type Content = ChatMessage['content']

function toParts(content: Content): object[] {
  if (content == null) return []
  if (typeof content === 'string') return [{ type: 'input_text', text: content }]
  return content.map((part) => toPart(part as { type: string; [field: string]: unknown }))
}

/** Keeps the chat API's form for parts that OpenAI's items do not define. */
function toPart(part: { type: string; [field: string]: unknown }): object {
  if (part.type === 'text') return { type: 'input_text', text: part.text }
  if (part.type === 'image_url') {
    const { url, detail } = part.image_url as { url: string; detail?: string }
    return { type: 'input_image', image_url: url, detail: detail ?? 'auto' }
  }
  if (part.type === 'file') return { type: 'input_file', ...(part.file as object) }
  return part
}

function textOf(content: Content): string {
  if (typeof content === 'string') return content
  return (content ?? []).map((part) => (typeof part.text === 'string' ? part.text : '')).join('')
}

const CONTINUE =
  '[Sent by the service, not by the user] Your last answer was interrupted. Continue it exactly where it stopped. Do not repeat any of it, and do not mention the interruption.'

/** Creates the item that asks a model to continue an interrupted answer. */
export function continuationItem(random: Random): NewItem {
  const id = newId('msg_', ID_LENGTH, random)
  return {
    ...{ id, type: 'message', role: 'user', author: 'service', status: 'completed' },
    body: {
      type: 'message',
      id,
      role: 'user',
      status: 'completed',
      content: [{ type: 'input_text', text: CONTINUE }],
    },
    isForVisitor: false,
  }
}

const prefixes = {
  message: 'msg_',
  function_call: 'fc_',
  function_call_output: 'fco_',
  reasoning: 'rs_',
} as const

/** An item as a client sends it to the Responses API or to a conversation. */
export interface SentItem {
  readonly [field: string]: unknown
  readonly type?: keyof typeof prefixes | 'item_reference' | null | undefined
  readonly role?: string
}

/** Converts a request's input to items with new ids. */
export function toInputItems(input: string | readonly SentItem[], random: Random): NewItem[] {
  const items: readonly SentItem[] = typeof input === 'string' ? [{ role: 'user', content: input }] : input
  return items.map((sent) => {
    const type = sent.type == null || sent.type === 'item_reference' ? 'message' : sent.type
    const id = newId(prefixes[type], ID_LENGTH, random)
    const role = type === 'message' ? (sent.role ?? 'user') : null
    const { content } = sent
    const parts = typeof content === 'string' ? { content: [toTextPart(content, role)] } : {}
    const summary = type === 'reasoning' ? { summary: sent.summary ?? [] } : {}
    return {
      ...{ id, type, role, status: 'completed' },
      author: role === 'user' ? 'visitor' : 'page',
      body: { ...sent, ...parts, ...summary, type, id, status: 'completed' },
      isForVisitor: role === 'user' || role === 'assistant',
    }
  })
}

function toTextPart(text: string, role: string | null): object {
  return role === 'assistant'
    ? { type: 'output_text', text, annotations: [], logprobs: [] }
    : { type: 'input_text', text }
}

export type StoredRow = Pick<ItemRow, 'author' | 'for_visitor' | 'type' | 'body'>

/** Returns whether an item came with the turn's request rather than from the model or its tools. */
export function isInput({ author }: Pick<StoredRow, 'author'>): boolean {
  return author !== 'model' && author !== 'tool'
}

/**
 * Returns whether a response contains an item of its turn: all items from the model except calls to server
 * tools.
 */
export function isOutput({ author, type, for_visitor }: StoredRow): boolean {
  return author === 'model' && !(type === 'function_call' && for_visitor === 0)
}

/** Renders an item as OpenAI's API lists it. */
export function toListedItem({ body }: Pick<StoredRow, 'body'>): ListedItem {
  const { handover: _handover, replacement: _replacement, ...item } = JSON.parse(body)
  return item
}
