/**
 * Gives agent keys with a visitor's token access to that visitor's conversations in the Conversations API.
 */
import type { z } from 'zod'
import type { ItemRow } from '../conversations/item-store.ts'
import { toListedItem } from '../conversations/items.ts'
import type { ConversationObject, ItemReference, ItemsQuery, ListedItem } from '../conversations/schema.ts'
import {
  type ConversationRow,
  findVisibleItem,
  type HandoverInput,
  listVisibleItems,
  type MessageInput,
  type NewRating,
  type StoredMessage,
} from '../conversations/visible.ts'
import { ServiceError } from '../lib/errors.ts'
import { readPage } from '../lib/page.ts'
import type { AnyCaller, Call, Operation } from '../operations/operation.ts'
import type { Dependencies } from './dependencies.ts'
import { askForPerson, sendToPerson } from './handover.ts'
import { rateOwn } from './ratings.ts'
import {
  type Context,
  deleteOwn,
  findOwnConversation,
  findShowsNames,
  readOwnPage,
  requireVisitor,
} from './visitors.ts'

type Handler = (context: Context, input: unknown) => Promise<unknown>

const handlers: Readonly<Record<string, Handler>> = {
  list: (context, input) => list(context, input as ListQuery),
  get: async (context, input) => render((await findOwnConversation(context, idIn(input))).conversation),
  async delete(context, input) {
    const id = idIn(input)
    await deleteOwn(context, id)
    return { id, object: 'conversation.deleted', deleted: true }
  },
  listItems: (context, input) => listItems(context, input as z.output<typeof ItemsQuery>),
  getItem: (context, input) => getItem(context, input as z.output<typeof ItemReference>),
  handover: (context, input) => handOver(context, input as z.output<typeof HandoverInput>),
  sendMessage: (context, input) => storeMessage(context, input as z.output<typeof MessageInput>),
}

/** These operations also accept a response id instead of a visitor's token. */
const ratingHandlers: Readonly<Record<string, Handler>> = {
  rate: (context, input) => rateOwn(context, turnIn(input), input as NewRating),
  async unrate(context, input) {
    await rateOwn(context, turnIn(input), null)
    return { object: 'rating.deleted', deleted: true }
  },
}

type Operations = Readonly<Record<string, Operation<Dependencies>>>

/**
 * Lets visitors use these operations. All except ratings reject agent keys without a visitor's token (403
 * `visitor_required`).
 */
export function withVisitors<T extends object>(operations: T): T {
  const opened = Object.entries(operations as Operations).map(([name, operation]) => [
    name,
    operation.http?.path.startsWith('/v1/conversations') || Object.hasOwn(ratingHandlers, name)
      ? open(name, operation)
      : operation,
  ])
  return Object.fromEntries(opened)
}

function open(name: string, operation: Operation<Dependencies>): Operation<Dependencies> {
  return {
    ...operation,
    auth: { ...operation.auth, callers: ['parent', 'agent'] },
    async run(call: Call<Dependencies, AnyCaller, unknown>) {
      if (call.context.caller.kind !== 'agent') return operation.run(call as never)
      const context = call.context as unknown as Context
      const rate = ratingHandlers[name]
      if (rate !== undefined) return rate(context, call.input)
      requireVisitor(context)
      const handler = handlers[name]
      if (handler === undefined) throw new ServiceError('not_found', 'Visitors cannot use this operation.')
      return handler(context, call.input)
    },
  }
}

function turnIn(input: unknown): string {
  return (input as { readonly turn_id: string }).turn_id
}

function idIn(input: unknown): string {
  return (input as { readonly conversation_id: string }).conversation_id
}

interface ListQuery {
  readonly limit: number
  readonly after?: string | undefined
  readonly order: 'asc' | 'desc'
}

async function list(context: Context, query: ListQuery) {
  if (query.order !== 'desc')
    throw new ServiceError('invalid_value', 'order: must be desc for visitors', { param: 'order' })
  const visitor = requireVisitor(context)
  const { rows, hasMore } = await readOwnPage(context, visitor, query)
  return toList(rows.map(render), hasMore)
}

async function listItems(context: Context, query: z.output<typeof ItemsQuery>) {
  const { conversation_id: id, order } = query
  const { read } = await findOwnConversation(context, id)
  const { rows, hasMore } = await readPage(query, {
    find: (itemId) => findVisibleItem(read, id, itemId),
    list: (limit, after) => listVisibleItems(read, id, { limit, after: after?.position, order }),
  })
  const showsNames = await findShowsNames(context)
  const items = await context.deps.conversations.data.restore(rows)
  return toList(
    items.map((item) => toVisitorsItem(item, showsNames)),
    hasMore,
  )
}

async function getItem(
  context: Context,
  { conversation_id: id, item_id: itemId }: z.output<typeof ItemReference>,
): Promise<ListedItem> {
  const { read } = await findOwnConversation(context, id)
  const item = await findVisibleItem(read, id, itemId)
  if (item === undefined)
    throw new ServiceError('not_found', `Item with id '${itemId}' not found.`, { param: 'item_id' })
  const [restored] = await context.deps.conversations.data.restore([item])
  return toVisitorsItem(restored ?? item, await findShowsNames(context))
}

/** Adds `parley` only to the messages of people; visitors do not receive it with other items. */
function toVisitorsItem(row: ItemRow, showsNames: boolean): ListedItem {
  const item = toListedItem(row)
  if (row.author !== 'person') return item
  const { turn_id, author, created_at } = row
  return { ...item, parley: { turn_id, author, created_at, name: showsNames ? row.author_name : null } }
}

async function handOver(
  context: Context,
  { conversation_id: conversation, reason }: z.output<typeof HandoverInput>,
) {
  const row = await askForPerson(context, { conversation, reason })
  return { ...render(row), mode: row.mode, assignee: null }
}

async function storeMessage(context: Context, input: z.output<typeof MessageInput>): Promise<StoredMessage> {
  const { conversation_id: id, text, client_id } = input
  const { conversation, item } = await sendToPerson(context, { conversation: id, text, client_id })
  return { conversation_id: id, mode: conversation.mode, turn: null, item: toListedItem(item) }
}

/** Omits the metadata and statistics, which only the owner receives. */
function render({ id, created_at }: ConversationRow): ConversationObject {
  return { id, object: 'conversation', created_at, metadata: {} }
}

function toList<One extends { readonly id: string }>(data: readonly One[], hasMore: boolean) {
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: hasMore,
  }
}
