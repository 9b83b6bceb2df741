/** Defines the schemas of the Conversations API. */
import { z } from 'zod'
import { label, longText, recordOf, reference } from '../lib/schema-bounds.ts'
import { Rating } from './ratings/schema.ts'

const MAX_ITEMS = 20
const MAX_METADATA = 16

/** The visitor's action that replaced turns. */
export const Replacing = z.enum(['edited', 'regenerated', 'removed'])

const ItemDetails = z.strictObject({
  turn_id: z.string().nullable().meta({ description: 'Null for an item that was added outside of a turn.' }),
  author: z.enum(['visitor', 'model', 'person', 'page', 'tool', 'service']),
  created_at: z.int().meta({ description: 'Unix seconds.' }),
  name: z
    .string()
    .nullable()
    .optional()
    .meta({ description: 'Name of the person who wrote the item; only for the author `person`.' }),
  mode: z
    .enum(['model', 'waiting', 'person'])
    .optional()
    .meta({ description: 'The new mode; present only if the item records a mode change.' }),
  assignee: z
    .string()
    .nullable()
    .optional()
    .meta({ description: 'The person who answers after the change; only with `mode`.' }),
  reason: z
    .string()
    .nullable()
    .optional()
    .meta({ description: 'Why a person was asked for; only with `mode`.' }),
  replacement: z
    .strictObject({
      how: Replacing,
      turns: z.array(z.string()).meta({ description: 'Ids of the replaced turns, oldest first.' }),
    })
    .optional()
    .meta({ description: 'Present only if the item records that the visitor replaced turns.' }),
})

/** An item in the format of OpenAI's API; unknown fields are passed through. */
export const ListedItem = z
  .looseObject({
    id: z.string(),
    type: z.string(),
    status: z.string().optional(),
    parley: ItemDetails.optional().meta({
      description: "Fields that only Parley has; present only in a conversation's items.",
    }),
  })
  .meta({ id: 'ConversationItem' })
export type ListedItem = z.infer<typeof ListedItem>

export const ItemList = z
  .strictObject({
    object: z.literal('list'),
    data: z.array(ListedItem),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
    has_more: z.boolean(),
  })
  .meta({ id: 'ConversationItemList' })
export type ItemList = z.infer<typeof ItemList>

const Metadata = recordOf(z.string().max(64), z.string().max(512), MAX_METADATA)

const Part = z.looseObject({ type: label(), text: longText().optional() })

const SentItem = z.discriminatedUnion('type', [
  z.looseObject({
    type: z.literal('message'),
    role: z.enum(['user', 'assistant', 'system', 'developer']),
    content: z.union([longText(), z.array(Part).max(2048)]),
  }),
  z.looseObject({
    type: z.literal('function_call'),
    call_id: reference(),
    name: label(),
    arguments: longText(),
  }),
  z.looseObject({
    type: z.literal('function_call_output'),
    call_id: reference(),
    output: z.union([longText(), z.array(Part).max(2048)]),
  }),
  z.looseObject({ type: z.literal('reasoning'), summary: z.array(Part).max(2048).optional() }),
])

/** A message may omit its type, as in OpenAI's API. */
const NewItem = z.preprocess(
  (item) =>
    typeof item === 'object' && item !== null && !('type' in item) && 'role' in item
      ? { type: 'message', ...item }
      : item,
  SentItem,
)

const items = z.array(NewItem).max(MAX_ITEMS, `must be at most ${MAX_ITEMS} items`)
const conversationId = reference().meta({
  description: 'Conversation id: `conv_` followed by 24 characters.',
})

export const ConversationReference = z.object({ conversation_id: conversationId })

export const ConversationCreation = z
  .strictObject({ items: items.nullish(), metadata: Metadata.nullish() })
  .meta({ id: 'ConversationCreation' })

export const ConversationUpdate = ConversationReference.extend({ metadata: Metadata.nullable() })

export const ItemsCreation = ConversationReference.extend({ items: items.min(1) })

export const ItemsQuery = ConversationReference.extend({
  limit: z.int().min(1).max(100).default(20).meta({ description: 'Maximum number of items to return.' }),
  order: z.enum(['asc', 'desc']).default('desc'),
  after: reference()
    .optional()
    .meta({ description: 'Id of an item; returns only items after it in the list.' }),
})

export const ItemReference = ConversationReference.extend({
  item_id: reference().meta({ description: 'Item id.' }),
})

/** Describes the field `reason` of a turn. */
export const turnReason =
  'For an incomplete turn: `max_output_tokens`, `content_filter` or `interrupted`. For a cancelled turn: `taken_over` if a person took the conversation over. Null for other turns.'

const TurnStatus = z.enum(['queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled'])

const VisitorDetails = z.strictObject({
  id: z.string(),
  kind: z.enum(['anonymous', 'verified', 'named']),
  subject: z
    .string()
    .meta({ description: 'Identifies the visitor. For an anonymous visitor, it equals `id`.' }),
  name: z.string().nullable(),
})

const Details = z.strictObject({
  agent_id: z.string().nullable(),
  visitor: VisitorDetails.nullable().meta({ description: 'Null for a conversation without a visitor.' }),
  channel: z.enum(['widget', 'api', 'console']),
  mode: z.enum(['model', 'waiting', 'person']),
  mode_since: z.int().meta({ description: 'Unix seconds of the last change of `mode`.' }),
  assignee: z.string().nullable().meta({ description: 'Person who answers; null in other modes.' }),
  answer_due: z.int().nullable().meta({
    description:
      'Unix seconds at which the mode changes if no person answers: from `person` to `waiting`, from `waiting` to `model`. Null if no answer is due.',
  }),
  title: z.string().nullable().meta({ description: 'The first 80 characters of the first user message.' }),
  tags: z.array(z.string()),
  turns: z.int(),
  up: z.int().meta({ description: 'Number of good ratings.' }),
  down: z.int().meta({ description: 'Number of bad ratings.' }),
  failures: z.int().meta({ description: 'Number of turns that ended with an error.' }),
  last_status: TurnStatus.nullable().meta({ description: 'Status of the last turn; null without turns.' }),
  last_error_code: z.string().nullable().meta({ description: 'Error code of the last turn, if it has one.' }),
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  cost: z.string().nullable().meta({
    description:
      'Cost in US dollars: the sum of the turns whose cost is known; null if no turn has a known cost.',
  }),
  last_at: z.int().meta({ description: 'Unix seconds of the last activity.' }),
  expires_at: z.int().meta({ description: 'Unix seconds after which the conversation is deleted.' }),
})

export const ConversationObject = z
  .strictObject({
    id: z.string(),
    object: z.literal('conversation'),
    created_at: z.int().meta({ description: 'Unix seconds.' }),
    metadata: z.record(z.string(), z.string()),
    parley: Details.optional().meta({ description: 'Fields that only Parley has; absent for agent keys.' }),
  })
  .meta({ id: 'Conversation' })
export type ConversationObject = z.infer<typeof ConversationObject>

export const ConversationDeleted = z
  .strictObject({
    id: z.string(),
    object: z.literal('conversation.deleted'),
    deleted: z.literal(true),
  })
  .meta({ id: 'ConversationDeleted' })

export const TurnsQuery = ConversationReference.extend({
  limit: z.int().min(1).max(100).default(20).meta({ description: 'Maximum number of turns to return.' }),
  order: z.enum(['asc', 'desc']).default('desc'),
  after: reference()
    .optional()
    .meta({ description: 'Id of a turn; returns only turns after it in the list.' }),
})

export const TurnReference = z.object({
  turn_id: reference().meta({ description: 'Turn id: `turn_` followed by 24 characters.' }),
})

export const TurnState = z
  .strictObject({
    id: z.string(),
    object: z.literal('turn'),
    status: TurnStatus,
    reason: z.string().nullable().meta({ description: turnReason }),
    error_code: z.string().nullable(),
    created_at: z.int().meta({ description: 'Unix seconds.' }),
    ended_at: z.int().nullable().meta({ description: 'Unix seconds; null while the turn runs.' }),
  })
  .meta({ id: 'TurnState' })
export type TurnState = z.infer<typeof TurnState>

const turnFields = {
  id: z.string(),
  object: z.literal('turn'),
  conversation_id: z.string(),
  number: z.int().meta({ description: 'Position in the conversation, from 1.' }),
  previous_id: z.string().nullable().meta({ description: 'Id of the turn that this one follows.' }),
  replaced: z
    .strictObject({
      how: Replacing,
      by: z.string().nullable().meta({ description: 'Id of the turn that replaced this one.' }),
    })
    .nullable()
    .meta({
      description:
        'Set if the visitor edited or removed the message, or requested another answer; models no longer receive the turn.',
    }),
  agent_id: z.string().nullable(),
  agent_version: z.int().nullable(),
  kind: z.enum(['model', 'person', 'continuation']),
  status: TurnStatus,
  reason: z.string().nullable().meta({ description: turnReason }),
  error_code: z.string().nullable(),
  background: z.boolean(),
  provider: z.string().nullable(),
  model: z.string().nullable(),
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  cost: z.string().nullable().meta({
    description:
      'Cost in US dollars. Null while the turn is running, if a model has no price, or if the server process stopped during the turn.',
  }),
  first_event_ms: z.int().nullable(),
  duration_ms: z.int().nullable(),
  request_id: z.string(),
  ratings: z.array(Rating).meta({ description: 'At most one from each source.' }),
  created_at: z.int().meta({ description: 'Unix seconds.' }),
  ended_at: z.int().nullable().meta({ description: 'Unix seconds; null while the turn runs.' }),
}

export const TurnObject = z.strictObject(turnFields).meta({ id: 'Turn' })
export type TurnObject = z.infer<typeof TurnObject>

export const TurnDetails = z
  .strictObject({
    ...turnFields,
    diagnostics: z.record(z.string(), z.unknown()).meta({
      description:
        'Diagnostics of the turn: route, attempts, fallback, policy, history, tools, budget, tokens, timings and stream resumes. See docs/conversations.md.',
    }),
  })
  .meta({ id: 'TurnDetails' })
export type TurnDetails = z.infer<typeof TurnDetails>

export const TurnList = z
  .strictObject({
    object: z.literal('list'),
    data: z.array(TurnObject),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
    has_more: z.boolean(),
  })
  .meta({ id: 'TurnList' })
export type TurnList = z.infer<typeof TurnList>
