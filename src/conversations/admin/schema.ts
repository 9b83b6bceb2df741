/** Defines the schemas of the conversation log: filters, hits, tags and notes. */
import { z } from 'zod'
import { label, modelId, reference, searchText, singleLine, storable } from '../../lib/schema-bounds.ts'
import { ratingReasons } from '../ratings/schema.ts'
import { ConversationObject, ConversationReference } from '../schema.ts'
import { turnReasons, turnStatuses } from './filters.ts'

const MAX_TAGS = 20
const MAX_TAG = 40
const MAX_NOTE = 4_000
const LAST_SECOND = 253_402_300_799

const second = () => z.int().min(0).max(LAST_SECOND)

const filters = {
  agent: reference().optional().meta({ description: 'Id of an agent.' }),
  q: searchText().optional().meta({
    description:
      'Words that one message must contain: `late refund`, `"late arrival"` (a phrase), `-hotel` (not this word), `book*` (the beginning of a word).',
  }),
  from: second().optional().meta({ description: 'Created at this time or later (Unix seconds).' }),
  to: second().optional().meta({ description: 'Created before this time (Unix seconds).' }),
  channel: z.enum(['widget', 'api', 'console']).optional(),
  mode: z.enum(['model', 'waiting', 'person']).optional(),
  assignee: label().optional().meta({
    description: 'The person who answers: an email address or a name; `me` for the caller.',
  }),
  visitor: reference().optional().meta({ description: 'Id of a visitor.' }),
  tag: label().optional().meta({ description: 'Tag of the conversation.' }),
  rating: z.enum(['up', 'down']).optional().meta({ description: 'Rating of a turn.' }),
  reason: z
    .enum([...ratingReasons, ...turnReasons])
    .optional()
    .meta({ description: 'Reason for a rating, or why a turn is incomplete or was cancelled.' }),
  status: z
    .enum([...turnStatuses, 'unanswered'])
    .optional()
    .meta({
      description:
        'Status of a turn; `failed` also for incomplete turns with an error code. `unanswered` if the model answers the conversation, and its newest message is a question or reports that no person has answered.',
    }),
  error: label().optional().meta({ description: 'Error code of a turn.' }),
  tool: label().optional().meta({ description: 'Name of a tool that a turn called.' }),
  model: modelId().optional().meta({ description: 'Model of a turn: `model` or `provider/model`.' }),
  version: z.int().min(1).optional().meta({ description: 'Agent version of a turn.' }),
  min_tokens: z.int().min(0).optional().meta({ description: 'Minimum total number of tokens in all turns.' }),
}

export const ConversationListQuery = z.object({
  limit: z
    .int()
    .min(1)
    .max(100)
    .default(50)
    .meta({ description: 'Maximum number of conversations to return.' }),
  after: reference().optional().meta({ description: 'Id of a conversation; returns only those after it.' }),
  order: z.enum(['asc', 'desc']).default('desc'),
  sort: z.enum(['created', 'activity']).default('created').meta({
    description: 'Sorts by the time of creation, or of the last activity (`parley.last_at`).',
  }),
  ...filters,
})
export type ConversationListQuery = z.output<typeof ConversationListQuery>

export const ConversationExportQuery = z.object(filters)
export type ConversationExportQuery = z.output<typeof ConversationExportQuery>

export const ListedConversation = z
  .strictObject({
    ...ConversationObject.shape,
    match: z
      .strictObject({ item_id: z.string(), snippet: z.string() })
      .optional()
      .meta({ description: 'The first message that `q` matches; absent without such a message.' }),
  })
  .meta({ id: 'ListedConversation' })
export type ListedConversation = z.infer<typeof ListedConversation>

export const ConversationList = z
  .strictObject({
    object: z.literal('list'),
    data: z.array(ListedConversation),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
    has_more: z.boolean(),
  })
  .meta({ id: 'ConversationList' })
export type ConversationList = z.infer<typeof ConversationList>

export const Tags = ConversationReference.extend({
  tags: z
    .array(
      singleLine(
        z.string().trim().min(1, 'must not be empty').max(MAX_TAG, `must be at most ${MAX_TAG} characters`),
      ),
    )
    .max(MAX_TAGS, `must be at most ${MAX_TAGS} tags`),
})

export const NewNote = ConversationReference.extend({
  text: storable(
    z.string().trim().min(1, 'must not be empty').max(MAX_NOTE, `must be at most ${MAX_NOTE} characters`),
  ),
})

export const NoteReference = ConversationReference.extend({
  note_id: reference().meta({ description: 'Note id: `note_` followed by 24 characters.' }),
})

export const Note = z
  .strictObject({
    id: z.string(),
    object: z.literal('conversation.note'),
    author: z.string().meta({ description: 'Email address of a user, or id of a parent key.' }),
    text: z.string(),
    created_at: z.int().meta({ description: 'Unix seconds.' }),
  })
  .meta({ id: 'ConversationNote' })
export type Note = z.infer<typeof Note>

export const NoteList = z
  .strictObject({ object: z.literal('list'), data: z.array(Note) })
  .meta({ id: 'ConversationNoteList' })

export const NoteDeleted = z
  .strictObject({
    id: z.string(),
    object: z.literal('conversation.note.deleted'),
    deleted: z.literal(true),
  })
  .meta({ id: 'ConversationNoteDeleted' })
