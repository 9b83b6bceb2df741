/** Defines the operations of the Conversations API, which is compatible with OpenAI's. */
import { z } from 'zod'
import type { Config } from '../config/config.ts'
import { actorOf } from '../identity/audit.ts'
import { operationsOf, type ParentCaller } from '../operations/operation.ts'
import { addNote, deleteNote, listNotes, setTags } from './admin/annotations.ts'
import { exportConversations, listConversations } from './admin/log.ts'
import {
  ConversationExportQuery,
  ConversationList,
  ConversationListQuery,
  NewNote,
  Note,
  NoteDeleted,
  NoteList,
  NoteReference,
  Tags,
} from './admin/schema.ts'
import { personOf } from './handover/requests.ts'
import { findRatedTurn, rateTurn, readRatings, unrateTurn } from './ratings/ratings.ts'
import {
  Rating,
  RatingDeleted,
  RatingInput,
  RatingList,
  RatingReference,
  RatingsQuery,
} from './ratings/schema.ts'
import {
  addItems,
  createConversation,
  deleteConversation,
  deleteItem,
  getConversation,
  getItem,
  listConversationItems,
  type OperationsDependencies,
  recordRead,
  updateConversation,
} from './requests.ts'
import {
  ConversationCreation,
  ConversationDeleted,
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

const tagsBody = { bodySchema: Tags.omit({ conversation_id: true }).meta({ id: 'ConversationTags' }) }
const noteBody = { bodySchema: NewNote.omit({ conversation_id: true }).meta({ id: 'NewConversationNote' }) }
const ratingBody = { bodySchema: RatingInput.omit({ turn_id: true }).meta({ id: 'NewRating' }) }

/** Replaces `me` in the filter `assignee`. */
function withAssignee<Query extends ConversationExportQuery>(
  context: { readonly caller: ParentCaller },
  query: Query,
): Query {
  return query.assignee === 'me' ? { ...query, assignee: personOf(context, undefined).assignee } : query
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
    docs: {
      summary: 'List your conversations',
      description:
        'Newest first by default. A conversation must match all filters. The same turn must match all filters on turns and ratings.',
      failures: { 400: 'A filter is invalid.' },
    },
    input: ConversationListQuery,
    output: ConversationList,
    run: ({ context, input }) =>
      listConversations(context.deps, context.caller.tenantId, withAssignee(context, input)),
  }),

  export: query({
    http: { method: 'GET', path: '/v1/conversations/export' },
    rpc: false,
    response: { generated: 'application/jsonl' },
    docs: {
      summary: 'Export conversations as JSON Lines, oldest first',
      description:
        'Streams one line for each turn, with its items, ratings, diagnostics and conversation. Items that belong to no turn, such as messages from people, have their own lines in between. The last line is `{"object": "export.end", "turns": …}`; without it, the export is incomplete.',
      failures: { 400: 'A filter is invalid.' },
    },
    input: ConversationExportQuery,
    output: z.never(),
    run: ({ context, input }) =>
      exportConversations(
        context.deps,
        actorOf(context),
        context.caller.tenantId,
        withAssignee(context, input),
      ),
  }),

  ratings: query({
    http: { method: 'GET', path: '/v1/conversations/ratings' },
    docs: {
      summary: 'Count ratings by day, agent or version',
      description: 'A rating counts on the UTC day on which it was first given.',
    },
    input: RatingsQuery,
    output: RatingList,
    run: ({ context: { deps, caller }, input }) => readRatings(deps, caller.tenantId, input),
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
      summary: 'Delete a conversation and its items',
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
    docs: { summary: 'Get an item from a conversation', failures: { 404: 'The item does not exist.' } },
    input: ItemReference,
    output: ListedItem,
    run: async ({ context, input }) => {
      await recordRead(context, input.conversation_id)
      return getItem(context.deps, context.caller.tenantId, input)
    },
  }),

  deleteItem: mutation({
    http: { method: 'DELETE', path: '/v1/conversations/{conversation_id}/items/{item_id}' },
    docs: { summary: 'Delete an item from a conversation', failures: { 404: 'The item does not exist.' } },
    input: ItemReference,
    output: ConversationObject,
    run: ({ context: { deps, caller }, input }) => deleteItem(deps, caller.tenantId, input),
  }),

  setTags: mutation({
    http: { method: 'PUT', path: '/v1/conversations/{conversation_id}/tags' },
    request: tagsBody,
    docs: { summary: "Replace a conversation's tags", failures: notFound },
    input: Tags,
    output: ConversationObject,
    run: ({ context: { deps, caller }, input }) =>
      setTags(deps, caller.tenantId, input.conversation_id, input.tags),
  }),

  listNotes: query({
    http: { method: 'GET', path: '/v1/conversations/{conversation_id}/notes' },
    docs: { summary: "List a conversation's notes, oldest first", failures: notFound },
    input: ConversationReference,
    output: NoteList,
    run: async ({ context, input }) => {
      await recordRead(context, input.conversation_id)
      return listNotes(context.deps, context.caller.tenantId, input.conversation_id)
    },
  }),

  addNote: mutation({
    http: { method: 'POST', path: '/v1/conversations/{conversation_id}/notes' },
    request: noteBody,
    docs: {
      summary: 'Add a note to a conversation',
      description: 'Notes are visible only to owners.',
      failures: { ...notFound, 409: 'The conversation has 200 notes (`notes_full`).' },
    },
    input: NewNote,
    output: Note,
    run: ({ context, input }) =>
      addNote(context.deps, context.caller.tenantId, { ...input, author: actorOf(context).name }),
  }),

  deleteNote: mutation({
    http: { method: 'DELETE', path: '/v1/conversations/{conversation_id}/notes/{note_id}' },
    docs: { summary: 'Delete a note from a conversation', failures: { 404: 'The note does not exist.' } },
    input: NoteReference,
    output: NoteDeleted,
    run: ({ context: { deps, caller }, input }) => deleteNote(deps, caller.tenantId, input),
  }),

  turns: query({
    http: { method: 'GET', path: '/v1/conversations/{conversation_id}/turns' },
    docs: { summary: "List a conversation's turns", failures: notFound },
    input: TurnsQuery,
    output: TurnList,
    run: async ({ context, input }) => {
      await recordRead(context, input.conversation_id)
      return listTurns(context.deps, context.caller.tenantId, input)
    },
  }),

  turn: query({
    http: { method: 'GET', path: '/v1/turns/{turn_id}' },
    docs: { summary: 'Get a turn with its diagnostics', failures: { 404: 'The turn does not exist.' } },
    input: TurnReference,
    output: TurnDetails,
    run: async ({ context, input }) => {
      const turn = await getTurn(context.deps, context.caller.tenantId, input.turn_id)
      await recordRead(context, turn.conversation_id)
      return turn
    },
  }),

  rate: mutation({
    http: { method: 'PUT', path: '/v1/turns/{turn_id}/rating' },
    request: ratingBody,
    docs: {
      summary: 'Rate a turn',
      description:
        'Replaces the earlier rating from the same source: the visitor, the users of the console, or clients with a parent key.',
      failures: {
        404: 'The turn does not exist.',
        409: 'The turn is still running (`turn_running`).',
      },
    },
    input: RatingInput,
    output: Rating,
    run: async ({ context: { deps, caller }, input }) =>
      rateTurn(deps, await findRatedTurn(deps, caller.tenantId, input.turn_id), sourceOf(caller), input),
  }),

  unrate: mutation({
    http: { method: 'DELETE', path: '/v1/turns/{turn_id}/rating' },
    docs: { summary: 'Delete your rating of a turn', failures: { 404: 'The rating does not exist.' } },
    input: RatingReference,
    output: RatingDeleted,
    run: async ({ context: { deps, caller }, input }) =>
      unrateTurn(deps, await findRatedTurn(deps, caller.tenantId, input.turn_id), sourceOf(caller)),
  }),
}

function sourceOf({ user }: ParentCaller): 'owner' | 'api' {
  return user === undefined ? 'api' : 'owner'
}

export { handoverOperations } from './handover/operations.ts'
