/** Defines the schemas of the operations that change who answers a conversation. */
import { z } from 'zod'
import { boundElsewhere, singleLine, storable } from '../../lib/schema-bounds.ts'
import { ConversationObject, ConversationReference, ListedItem } from '../schema.ts'

export const MAX_MESSAGE = 8_000
const MAX_REASON = 500
const MAX_NAME = 80

export const ClientId = z
  .uuid('must be a UUID')
  .register(boundElsewhere, { by: 'the length of a UUID' })
  .meta({ description: 'UUID that the client chooses. Requests with the same UUID have the same result.' })

export const MessageText = storable(
  z.string().max(MAX_MESSAGE, `must be at most ${MAX_MESSAGE} characters`),
).refine((text) => text.trim() !== '', 'must not be blank')

export const Reason = storable(z.string().max(MAX_REASON, `must be at most ${MAX_REASON} characters`))
  .optional()
  .meta({ description: 'Why a person is needed, for the people who answer.' })

const Name = singleLine(
  z.string().min(1, 'must not be empty').max(MAX_NAME, `must be at most ${MAX_NAME} characters`),
)
  .optional()
  .meta({
    description:
      'Name of the person that the visitor sees. Default for users of the console: the part of the email address before the `@`.',
  })

const Mode = z.enum(['model', 'waiting', 'person'])

export const HandoverInput = ConversationReference.extend({ reason: Reason })
export const TakeoverInput = ConversationReference.extend({ name: Name })
export const MessageInput = ConversationReference.extend({
  text: MessageText,
  client_id: ClientId,
  name: Name,
  if_mode: z.literal('person').optional().meta({
    description:
      'Stores the message only if a person answers the conversation, so that the request does not take it over.',
  }),
})

export const HandoverBody = HandoverInput.omit({ conversation_id: true }).meta({ id: 'ConversationHandover' })
export const TakeoverBody = TakeoverInput.omit({ conversation_id: true }).meta({ id: 'ConversationTakeover' })
export const MessageBody = MessageInput.omit({ conversation_id: true }).meta({ id: 'ConversationMessage' })

export const ConversationMode = ConversationObject.extend({
  mode: Mode,
  assignee: z
    .string()
    .nullable()
    .meta({ description: 'The person who answers; null for visitors and in other modes than `person`.' }),
}).meta({ id: 'ConversationMode' })
export type ConversationMode = z.infer<typeof ConversationMode>

export const StoredMessage = z
  .strictObject({
    conversation_id: z.string(),
    mode: Mode,
    turn: z.null().meta({ description: 'Always null, because no model answers.' }),
    item: ListedItem,
  })
  .meta({ id: 'StoredConversationMessage' })
export type StoredMessage = z.infer<typeof StoredMessage>

const WaitingConversation = z.strictObject({
  id: z.string(),
  agent_id: z.string().nullable(),
  title: z.string().nullable(),
  since: z.int().meta({ description: 'Unix seconds at which the visitor started to wait.' }),
})

const AnswerableConversation = WaitingConversation.omit({ since: true }).extend({
  answer_due: z.int().meta({ description: 'Unix seconds at which the mode changes to `waiting`.' }),
})

export const Waiting = z.strictObject({
  count: z.int().meta({ description: 'Number of conversations in the mode `waiting`.' }),
  conversations: z
    .array(WaitingConversation)
    .meta({ description: 'At most 50 conversations, those that have waited longest.' }),
  mine: z.array(AnswerableConversation).meta({
    description:
      'At most 50 conversations in which the visitor has written to the caller, who has not answered yet. Those that are due first come first.',
  }),
})
export type Waiting = z.infer<typeof Waiting>
