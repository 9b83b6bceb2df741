/** Defines the schemas of the visitors' operations and of the feed of a conversation. */
import { z } from 'zod'
import {
  ClientId as clientId,
  Rating,
  Reason,
  ReplacingSchema,
  ratingFields,
  turnReason,
} from '../conversations/visible.ts'
import { foreignId, label, longText, modelId, reference } from '../lib/schema-bounds.ts'
import { ChatTool, MAX_TOOLS, text } from '../providers/chat-api.ts'

const MAX_TEXT = 64 * 1024
const MAX_CONTEXT = 64 * 1024
const MAX_OUTPUT = 256 * 1024
const MAX_RESULTS = 128
const MAX_ATTACHMENTS = 10

const conversationId = reference().meta({ description: 'Conversation id: `conv_` and 24 characters.' })
const turnId = reference().meta({ description: 'Turn id: `turn_` and 24 characters.' })
const cursor = z
  .string()
  .max(64)
  .meta({ description: 'Position in the feed of a conversation: the id of the last event received.' })

/** Fields that the page sends for one turn; they are not stored. */
const turnFields = {
  context: z
    .string()
    .max(MAX_CONTEXT, `must be at most ${MAX_CONTEXT} characters`)
    .optional()
    .meta({ description: 'Information about the page, which the model receives as untrusted text.' }),
  tools: z
    .array(ChatTool)
    .max(MAX_TOOLS)
    .optional()
    .meta({ description: 'Tools of the page that sends this request.' }),
  model: modelId().optional().meta({ description: 'Model to use, if the agent allows it.' }),
}

export const Visitor = z.strictObject({ id: z.string(), kind: z.enum(['anonymous', 'verified', 'named']) })
export type Visitor = z.infer<typeof Visitor>

export const VisitorConversation = z
  .strictObject({
    id: z.string(),
    title: z.string().nullable(),
    last_at: z.int().meta({ description: 'Unix seconds of the last activity.' }),
    created_at: z.int().meta({ description: 'Unix seconds.' }),
    turns: z.int(),
    mode: z.enum(['model', 'waiting', 'person']),
  })
  .meta({ id: 'VisitorConversation' })
export type VisitorConversation = z.infer<typeof VisitorConversation>

const itemFields = {
  id: z.string(),
  turn_id: z.string().nullable(),
  author: z.enum(['visitor', 'model', 'person', 'page', 'tool', 'service']),
  author_name: z.string().nullable().optional().meta({
    description: 'Name of the person who wrote the item; absent for other authors.',
  }),
  status: z.enum(['completed', 'incomplete']),
  client_id: z.string().nullable(),
  created_at: z.int().meta({ description: 'Unix seconds.' }),
  text: z.string().optional().meta({ description: 'Text of a message.' }),
  attachments: z
    .array(
      z.strictObject({
        type: z.enum(['image', 'pdf', 'text', 'file']).meta({ description: '`file` stands for an upload.' }),
        name: z.string().nullable().meta({ description: 'File name, if the client sent one.' }),
        part: z.int().meta({ description: 'Value of `part` in `visitor.attachment`.' }),
        artifact_id: z.string().optional().meta({ description: 'Id of the artifact of an upload.' }),
        bytes: z.int().optional().meta({ description: 'Size of an upload in bytes.' }),
      }),
    )
    .optional()
    .meta({ description: 'Attachments of a message; absent if it has none.' }),
  call_id: z.string().optional(),
  name: z.string().optional(),
  arguments: z.string().optional().meta({ description: 'JSON object.' }),
  output: z.string().optional(),
}

/** An item that a visitor receives: a message, a page tool call or its result. */
export const VisitorItem = z
  .strictObject({ ...itemFields, type: z.enum(['message', 'function_call', 'function_call_output']) })
  .meta({ id: 'VisitorItem' })
export type VisitorItem = z.infer<typeof VisitorItem>

/** An item that an owner receives. Unlike visitors, owners also receive reasoning and server tool calls. */
export const FeedItem = z
  .strictObject({
    ...itemFields,
    type: z.enum(['message', 'function_call', 'function_call_output', 'reasoning']),
  })
  .meta({ id: 'FeedItem' })
export type FeedItem = z.infer<typeof FeedItem>

export const VisitorTurn = z
  .strictObject({
    id: z.string(),
    status: z.enum(['queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled']),
    reason: z.string().nullable().meta({ description: turnReason }),
    error_code: z.string().nullable(),
  })
  .meta({ id: 'VisitorTurn' })
export type VisitorTurn = z.infer<typeof VisitorTurn>

const CallDelta = z.strictObject({
  index: z.int(),
  call_id: z.string().optional(),
  name: z.string().optional(),
  arguments: z.string().optional(),
})
export type CallDelta = z.infer<typeof CallDelta>

const TurnDelta = z.strictObject({
  turn: z.string(),
  text: z.string().optional(),
  calls: z.array(CallDelta).optional(),
})

const TurnStarted = z.strictObject({ turn: VisitorTurn, client_id: z.string().nullable() })

const ModeChange = z.strictObject({
  mode: z.enum(['model', 'waiting', 'person']),
  since: z.int().meta({ description: 'Unix seconds.' }),
  name: z.string().nullable().meta({ description: 'Name of the person who answers, if it is shown.' }),
})

const OwnerModeChange = ModeChange.extend({
  assignee: z.string().nullable().meta({ description: 'The person who answers.' }),
  reason: z.string().nullable().meta({ description: 'Why a person was asked for.' }),
})

const Replacement = z.strictObject({
  how: ReplacingSchema,
  turns: z.array(z.string()).meta({ description: 'Ids of the replaced turns, oldest first.' }),
  by: z.string().nullable().meta({
    description: 'Id of the turn that replaces them, whose items follow; null if the visitor removed them.',
  }),
})

function feedOf<Item extends z.ZodType, Mode extends z.ZodType>(item: Item, mode: Mode) {
  const id = z.string().meta({ description: 'Cursor for continuing after this event.' })
  return z.discriminatedUnion('event', [
    z.strictObject({ id, event: z.literal('conversation.item'), data: z.strictObject({ item }) }),
    z.strictObject({ id, event: z.literal('conversation.turn.started'), data: TurnStarted }),
    z.strictObject({ id, event: z.literal('conversation.turn.delta'), data: TurnDelta }),
    z.strictObject({
      id,
      event: z.literal('conversation.turn.ended'),
      data: z.strictObject({ turn: VisitorTurn }),
    }),
    z.strictObject({ id, event: z.literal('conversation.mode'), data: mode }),
    z.strictObject({ id, event: z.literal('conversation.replaced'), data: Replacement }),
  ])
}

export const OwnerFeedEvent = feedOf(FeedItem, OwnerModeChange).meta({ id: 'ConversationEvent' })
export type OwnerFeedEvent = z.infer<typeof OwnerFeedEvent>

export const FeedEvent = feedOf(VisitorItem, ModeChange)
export type FeedEvent = z.infer<typeof FeedEvent>

export const SessionInput = z.strictObject({
  identity_token: longText().optional().meta({
    description: 'JWT that identifies the visitor; at most 8 KiB.',
  }),
})

export const SessionResult = z.strictObject({
  token: z.string().meta({ description: 'Send it in the `X-Parley-Visitor` header.' }),
  expires_at: z
    .int()
    .meta({ description: 'Unix seconds. For anonymous visitors, each call to `session` extends it.' }),
  visitor: Visitor,
  conversation: VisitorConversation.nullable().meta({
    description: "The visitor's latest conversation, if its last activity was within `visitor.resume`.",
  }),
})
export type SessionResult = z.infer<typeof SessionResult>

export const ConversationsQuery = z.object({
  limit: z.int().min(1).max(100).default(20),
  after: reference().optional(),
})

export const ConversationsResult = z.strictObject({
  data: z.array(VisitorConversation),
  has_more: z.boolean(),
})

export const OpenQuery = z.object({ conversation: conversationId })

const OwnRating = z.strictObject({ ...ratingFields, turn: z.string() })

export const OpenResult = z.strictObject({
  conversation: VisitorConversation,
  items: z.array(VisitorItem).meta({ description: 'The newest items, at most 500, oldest first.' }),
  modes: z.array(ModeChange.extend({ after: z.string().nullable() })).meta({
    description: 'The mode changes, oldest first; `after` is the id of the item before the change.',
  }),
  ratings: z.array(OwnRating).meta({ description: "The visitor's ratings of the turns of these items." }),
  versions: z
    .array(z.strictObject({ turn: z.string(), by: z.string() }))
    .meta({ description: 'Turns with earlier answers to a message, and the turns that replaced them.' }),
  turn: VisitorTurn.nullable().meta({ description: 'The running or last turn.' }),
  cursor: z.string().meta({
    description: 'Cursor for continuing after these items; a running turn is repeated from its first delta.',
  }),
})
export type OpenResult = z.infer<typeof OpenResult>

const MAX_FILE_NAME = 200

/** Parts have the format of the chat API, except uploads. A text part must begin with `[Attached file: <name>]`. */
const Attachment = z.discriminatedUnion(
  'type',
  [
    z.strictObject({ type: z.literal('image_url'), image_url: z.strictObject({ url: longText() }) }),
    z.strictObject({
      type: z.literal('file'),
      file: z.strictObject({ filename: label(), file_data: longText() }),
    }),
    z.strictObject({
      type: z.literal('text'),
      text: text.refine((given) => /^\[Attached file: [^\]\n]{1,200}\]\n/.test(given), {
        error: 'must begin with a line `[Attached file: <name>]`',
      }),
    }),
    z.strictObject({ type: z.literal('upload'), upload: z.strictObject({ id: reference() }) }),
  ],
  { error: 'must be image_url, file, text or upload' },
)

export const CreateUploadInput = z.strictObject({
  filename: z
    .string()
    .min(1, 'must not be empty')
    .max(MAX_FILE_NAME, `must be at most ${MAX_FILE_NAME} characters`)
    .regex(/^[^\][\p{Cc}]*$/u, 'must not contain [, ] or control characters')
    .meta({ description: 'File name; its extension determines the file type.' }),
  bytes: z.int().min(1, 'must be at least 1').meta({ description: 'Exact size of the file.' }),
})

export const CreateUploadResult = z.strictObject({
  id: z.string().meta({ description: 'Send it in an attachment of the type `upload`.' }),
  token: z.string().meta({ description: 'Allows to upload this file at `upload_url`, and to delete it.' }),
  expires_at: z.int().meta({ description: 'Unix seconds at which the token expires.' }),
  upload_url: z.string().meta({ description: 'Path of the tus endpoint.' }),
})
export type CreateUploadResult = z.infer<typeof CreateUploadResult>

export const SendInput = z
  .strictObject({
    conversation: conversationId.optional(),
    client_id: clientId,
    text: z.string().max(MAX_TEXT, `must be at most ${MAX_TEXT} characters`).meta({
      description: 'May be empty if the message has attachments.',
    }),
    attachments: z
      .array(Attachment)
      .max(MAX_ATTACHMENTS, `must be at most ${MAX_ATTACHMENTS} attachments`)
      .optional()
      .meta({ description: 'Files for the model, if the agent accepts them.' }),
    replaces: turnId.optional().meta({
      description:
        'A turn that answers an earlier message: this message replaces that one and everything after it. Without `attachments`, it keeps those of the earlier message. `conversation` is ignored.',
    }),
    ...turnFields,
  })
  .refine(({ text: given, attachments = [] }) => given !== '' || attachments.length > 0, {
    path: ['text'],
    error: 'must not be empty',
  })
export type SendInput = z.infer<typeof SendInput>

/** A turn that a visitor started. `cursor` is the position after its `conversation.turn.started` event. */
export const StartedResult = z.strictObject({ turn: VisitorTurn, cursor: z.string() })
export type StartedResult = z.infer<typeof StartedResult>

/** `turn` is null while the visitor waits for a person or a person answers. */
export const SendResult = StartedResult.extend({
  turn: VisitorTurn.nullable(),
  conversation: VisitorConversation,
  item: VisitorItem,
})
export type SendResult = z.infer<typeof SendResult>

export const RegenerateInput = z.strictObject({ turn: turnId, client_id: clientId, ...turnFields })
export type RegenerateInput = z.infer<typeof RegenerateInput>

export const RemoveInput = z.strictObject({ turn: turnId })
export const RemoveResult = z.strictObject({ removed: z.literal(true) })

export const AttachmentQuery = z.object({
  conversation: conversationId,
  item: reference(),
  part: z.int().min(0).max(1000).meta({ description: 'The `part` field of the attachment.' }),
})
export const AttachmentResult = z.strictObject({
  data: z.string().meta({ description: 'Data URL, or the text of a text file.' }),
})

export const FollowQuery = z.object({ conversation: conversationId, cursor: cursor.optional() })

export const CancelInput = z.strictObject({ turn: turnId })
export const CancelResult = z.strictObject({ turn: VisitorTurn })

export const ContinueInput = z.strictObject({ turn: turnId, ...turnFields })
export type ContinueInput = z.infer<typeof ContinueInput>

const CallResult = z.strictObject({
  call_id: foreignId(),
  output: z.string().max(MAX_OUTPUT, `must be at most ${MAX_OUTPUT} characters`),
})

export const ToolResultsInput = z.strictObject({
  turn: turnId,
  client_id: clientId,
  results: z.array(CallResult).min(1).max(MAX_RESULTS),
  ...turnFields,
})
export type ToolResultsInput = z.infer<typeof ToolResultsInput>

export const RequestPersonInput = z.strictObject({ conversation: conversationId, reason: Reason })
export const RequestPersonResult = z.strictObject({ conversation: VisitorConversation })

export const RateInput = z.strictObject({
  ...ratingFields,
  turn: turnId,
  value: ratingFields.value.nullable().meta({ description: 'Null deletes the rating.' }),
})
export const RateResult = z.strictObject({ rating: Rating.nullable() })

export const DeleteInput = z.strictObject({ conversation: conversationId })
export const DeleteResult = z.strictObject({ deleted: z.literal(true) })
