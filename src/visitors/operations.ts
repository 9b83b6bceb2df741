/** Defines the operations of visitors, which the widget uses, and the feed of a conversation. */
import { z } from 'zod'
import type { ChangedConversations, Waiting } from '../conversations/visible.ts'
import { reference } from '../lib/schema-bounds.ts'
import { operationsOf } from '../operations/operation.ts'
import { createUpload } from './attachments/uploads.ts'
import type { Dependencies } from './dependencies.ts'
import { findCursor, followOwn, followOwned, streamChanges, streamEvents, streamWaiting } from './follow.ts'
import { requestPerson } from './handover.ts'
import { readAttachment } from './messages.ts'
import { rateOwn } from './ratings.ts'
import {
  AttachmentQuery,
  AttachmentResult,
  CancelInput,
  CancelResult,
  ContinueInput,
  ConversationsQuery,
  ConversationsResult,
  CreateUploadInput,
  CreateUploadResult,
  DeleteInput,
  DeleteResult,
  type FeedEvent,
  FollowQuery,
  OpenQuery,
  OpenResult,
  OwnerFeedEvent,
  RateInput,
  RateResult,
  RegenerateInput,
  RemoveInput,
  RemoveResult,
  RequestPersonInput,
  RequestPersonResult,
  SendInput,
  SendResult,
  SessionInput,
  SessionResult,
  StartedResult,
  ToolResultsInput,
} from './schema.ts'
import { regenerate, removeMessage } from './turns/replace.ts'
import { cancelTurn, continueTurn, send, sendToolResults } from './turns.ts'
import { beginSession, deleteOwn, listOwn, openConversation } from './visitors.ts'

const { query, mutation } = operationsOf<Dependencies>()('Conversations', { callers: ['agent'] })

/**
 * All operations require an agent key. All except `session` act for the visitor of the token in
 * `X-Parley-Visitor`.
 */
export const visitorOperations = {
  session: mutation({
    auth: { callers: ['agent'], acceptsAnyVisitor: true },
    input: SessionInput,
    output: SessionResult,
    run: ({ context, input }) => beginSession(context, input.identity_token),
  }),

  conversations: query({
    input: ConversationsQuery,
    output: ConversationsResult,
    run: ({ context, input }) => listOwn(context, input),
  }),

  open: query({
    input: OpenQuery,
    output: OpenResult,
    run: ({ context, input }) => openConversation(context, input.conversation),
  }),

  send: mutation({
    input: SendInput,
    output: SendResult,
    run: ({ context, input }) => send(context, input),
  }),

  /** Uploads use the tus endpoint with the returned token. */
  createUpload: mutation({
    input: CreateUploadInput,
    output: CreateUploadResult,
    run: ({ context, input }) => createUpload(context, input),
  }),

  attachment: query({
    input: AttachmentQuery,
    output: AttachmentResult,
    run: ({ context, input }) => readAttachment(context, input),
  }),

  follow: query({
    input: FollowQuery,
    output: z.custom<AsyncIterable<FeedEvent>>(),
    run: ({ context, input, signal }) => followOwn(context, input, signal),
  }),

  cancel: mutation({
    input: CancelInput,
    output: CancelResult,
    run: async ({ context, input }) => ({ turn: await cancelTurn(context, input.turn) }),
  }),

  continue: mutation({
    input: ContinueInput,
    output: StartedResult,
    run: ({ context, input }) => continueTurn(context, input),
  }),

  regenerate: mutation({
    input: RegenerateInput,
    output: SendResult,
    run: ({ context, input }) => regenerate(context, input),
  }),

  remove: mutation({
    input: RemoveInput,
    output: RemoveResult,
    run: async ({ context, input }) => {
      await removeMessage(context, input.turn)
      return { removed: true as const }
    },
  }),

  toolResults: mutation({
    input: ToolResultsInput,
    output: StartedResult,
    run: ({ context, input }) => sendToolResults(context, input),
  }),

  rate: mutation({
    input: RateInput,
    output: RateResult,
    run: async ({ context, input: { turn, value, ...more } }) => ({
      rating: await rateOwn(context, turn, value === null ? null : { ...more, value }),
    }),
  }),

  requestPerson: mutation({
    input: RequestPersonInput,
    output: RequestPersonResult,
    run: ({ context, input }) => requestPerson(context, input),
  }),

  delete: mutation({
    input: DeleteInput,
    output: DeleteResult,
    run: async ({ context, input }) => {
      await deleteOwn(context, input.conversation)
      return { deleted: true as const }
    },
  }),
}

const EventsQuery = z.object({
  conversation_id: reference().meta({ description: 'Conversation id: `conv_` and 24 characters.' }),
  cursor: FollowQuery.shape.cursor,
})

export const feedOperations = {
  /**
   * Streams the number and the list of the conversations that wait for a person, and the list of those that
   * wait for the caller's answer, at once and after each change.
   */
  waiting: query({
    auth: { callers: ['parent'] },
    input: z.strictObject({}),
    output: z.custom<AsyncIterable<Waiting>>(),
    run: ({ context, signal }) => streamWaiting(context, signal),
  }),

  /** Streams the ids of the tenant's conversations that have changed, at most once per second. */
  changes: query({
    auth: { callers: ['parent'] },
    input: z.strictObject({}),
    output: z.custom<AsyncIterable<ChangedConversations>>(),
    run: ({ context, signal }) => streamChanges(context, signal),
  }),

  /** Returns the cursor from which `follow` repeats a running turn. Read it before the items, so that none is missed. */
  open: query({
    auth: { callers: ['parent'] },
    input: OpenQuery,
    output: z.strictObject({ cursor: z.string() }),
    run: async ({ context, input }) => ({ cursor: await findCursor(context, input.conversation) }),
  }),

  follow: query({
    auth: { callers: ['parent'] },
    input: FollowQuery,
    output: z.custom<AsyncIterable<OwnerFeedEvent>>(),
    run: async ({ context, input, signal }) =>
      // An owner's feed contains all items.
      (await followOwned(context, input, signal)) as AsyncGenerator<OwnerFeedEvent, void, void>,
  }),

  events: query({
    http: { method: 'GET', path: '/v1/conversations/{conversation_id}/events' },
    auth: { callers: ['parent', 'agent'] },
    request: { headers: { 'last-event-id': 'cursor' } },
    response: { events: OwnerFeedEvent },
    rpc: false,
    docs: {
      summary: 'Follow a conversation',
      description:
        "Streams the conversation's events from now on, or those after the event in `Last-Event-ID`. The stream does not end on its own. With an agent key, the `X-Parley-Visitor` header is required, and the stream contains only what visitors see (docs/conversations.md).",
      failures: { 404: 'The conversation does not exist.' },
    },
    input: EventsQuery,
    output: z.void(),
    run: ({ context, input, signal }) =>
      streamEvents(context, { conversation: input.conversation_id, cursor: input.cursor }, signal),
  }),
}
