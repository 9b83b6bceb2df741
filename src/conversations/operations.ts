/** Defines the operations of the Conversations API, which has the form of OpenAI's. */
import type { Config } from '../config/config.ts'
import { actorOf } from '../identity/audit.ts'
import { type CallContext, operationsOf, type ParentCaller } from '../operations/operation.ts'
import {
  addItems,
  createConversation,
  deleteConversation,
  deleteItem,
  findOwn,
  getConversation,
  getItem,
  listConversationItems,
  listConversations,
  type OperationsDependencies,
  updateConversation,
} from './requests.ts'
import {
  ConversationCreation,
  ConversationDeleted,
  ConversationList,
  ConversationListQuery,
  ConversationObject,
  ConversationReference,
  ConversationUpdate,
  ItemList,
  ItemReference,
  ItemsCreation,
  ItemsQuery,
  ListedItem,
  TurnDetails,
  TurnList,
  TurnReference,
  TurnsQuery,
} from './schema.ts'
import { getTurn, listTurns } from './turns/read-turns.ts'

const notFound = { 404: 'The conversation does not exist.' }
const off = { 400: 'Conversations are not stored (`conversations_off`).' }
const largeBody = { maxBodyBytes: ({ limits }: Config) => limits.maxBodyBytes }
const itemsBody = {
  ...largeBody,
  bodySchema: ItemsCreation.omit({ conversation_id: true }).meta({ id: 'ConversationItemsCreation' }),
}
const metadataBody = {
  bodySchema: ConversationUpdate.omit({ conversation_id: true }).meta({ id: 'ConversationUpdate' }),
}

const { query, mutation } = operationsOf<OperationsDependencies>()('Conversations', { callers: ['parent'] })

export const conversationsOperations = {
  create: mutation({
    http: { method: 'POST', path: '/v1/conversations' },
    request: largeBody,
    docs: {
      summary: 'Create a conversation',
      description: 'The conversation belongs to the agent of its first response.',
      failures: off,
    },
    input: ConversationCreation,
    output: ConversationObject,
    run: ({ context: { deps, caller }, input }) => createConversation(deps, caller.tenantId, input),
  }),

  list: query({
    http: { method: 'GET', path: '/v1/conversations' },
    docs: { summary: 'List your conversations, newest first' },
    input: ConversationListQuery,
    output: ConversationList,
    run: ({ context: { deps, caller }, input }) => listConversations(deps, caller.tenantId, input),
  }),

  get: query({
    http: { method: 'GET', path: '/v1/conversations/{conversation_id}' },
    docs: { summary: 'Get a conversation', failures: notFound },
    input: ConversationReference,
    output: ConversationObject,
    run: ({ context: { deps, caller }, input }) =>
      getConversation(deps, caller.tenantId, input.conversation_id),
  }),

  update: mutation({
    http: { method: 'POST', path: '/v1/conversations/{conversation_id}' },
    request: metadataBody,
    docs: { summary: "Replace a conversation's metadata", failures: notFound },
    input: ConversationUpdate,
    output: ConversationObject,
    run: ({ context: { deps, caller }, input }) =>
      updateConversation(deps, caller.tenantId, input.conversation_id, input.metadata),
  }),

  delete: mutation({
    http: { method: 'DELETE', path: '/v1/conversations/{conversation_id}' },
    docs: {
      summary: 'Delete a conversation with its items',
      description: 'Cancels a running response of the conversation first.',
      failures: notFound,
    },
    input: ConversationReference,
    output: ConversationDeleted,
    run: ({ context, input }) =>
      deleteConversation(context.deps, actorOf(context), context.caller.tenantId, input.conversation_id),
  }),

  addItems: mutation({
    http: { method: 'POST', path: '/v1/conversations/{conversation_id}/items' },
    request: itemsBody,
    docs: { summary: 'Add items to a conversation', failures: notFound },
    input: ItemsCreation,
    output: ItemList,
    run: ({ context: { deps, caller }, input }) =>
      addItems(deps, caller.tenantId, input.conversation_id, input.items),
  }),

  listItems: query({
    http: { method: 'GET', path: '/v1/conversations/{conversation_id}/items' },
    docs: { summary: "List a conversation's items", failures: notFound },
    input: ItemsQuery,
    output: ItemList,
    run: async ({ context, input }) => {
      await recordRead(context, input.conversation_id)
      return listConversationItems(context.deps, context.caller.tenantId, input)
    },
  }),

  getItem: query({
    http: { method: 'GET', path: '/v1/conversations/{conversation_id}/items/{item_id}' },
    docs: { summary: 'Get an item of a conversation', failures: { 404: 'The item does not exist.' } },
    input: ItemReference,
    output: ListedItem,
    run: async ({ context, input }) => {
      await recordRead(context, input.conversation_id)
      return getItem(context.deps, context.caller.tenantId, input)
    },
  }),

  deleteItem: mutation({
    http: { method: 'DELETE', path: '/v1/conversations/{conversation_id}/items/{item_id}' },
    docs: { summary: 'Delete an item of a conversation', failures: { 404: 'The item does not exist.' } },
    input: ItemReference,
    output: ConversationObject,
    run: ({ context: { deps, caller }, input }) => deleteItem(deps, caller.tenantId, input),
  }),

  turns: query({
    http: { method: 'GET', path: '/v1/conversations/{conversation_id}/turns' },
    docs: { summary: "List a conversation's turns", failures: notFound },
    input: TurnsQuery,
    output: TurnList,
    run: ({ context: { deps, caller }, input }) => listTurns(deps, caller.tenantId, input),
  }),

  turn: query({
    http: { method: 'GET', path: '/v1/turns/{turn_id}' },
    docs: { summary: 'Get a turn with its diagnostics', failures: { 404: 'The turn does not exist.' } },
    input: TurnReference,
    output: TurnDetails,
    run: ({ context: { deps, caller }, input }) => getTurn(deps, caller.tenantId, input.turn_id),
  }),
}

export { handoverOperations } from './handover/operations.ts'

/** Records that the caller reads the text of a conversation. @throws ServiceError `not_found` */
async function recordRead(
  context: CallContext<ParentCaller, OperationsDependencies>,
  conversationId: string,
): Promise<void> {
  const { deps, caller } = context
  const { conversation } = await findOwn(deps, caller.tenantId, conversationId)
  const { tenant: tenantId, agent_id: agentId } = conversation
  await deps.conversations.reads.record(deps, actorOf(context), { tenantId, conversationId, agentId })
}
