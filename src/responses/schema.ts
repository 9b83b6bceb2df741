/** Defines the request schema of the Responses API. */
import { z } from 'zod'
import { TurnReference } from '../conversations/schema.ts'
import { foreignId, jsonObject, label, longText, recordOf, reference } from '../lib/schema-bounds.ts'
import {
  ChatRequest,
  MAX_MESSAGES,
  MAX_PARTS,
  MAX_TOOLS,
  text,
  toolArguments,
  toolName,
} from '../providers/chat-api.ts'

const MAX_METADATA = 16
const MAX_INCLUDED = 64

const TextPart = z.looseObject({ type: z.enum(['input_text', 'output_text']), text })

const ImagePart = z.looseObject({
  type: z.literal('input_image'),
  image_url: longText(),
  detail: label().nullish(),
})

const FilePart = z
  .looseObject({
    type: z.literal('input_file'),
    file_data: longText().nullish(),
    file_id: label().nullish(),
    file_url: z.null({ error: 'must be null: the server does not fetch URLs; send file_data' }).optional(),
    filename: label().nullish(),
  })
  .refine((part) => part.file_data != null || part.file_id != null, {
    path: ['file_data'],
    message: 'is required in a file part without file_id',
  })

const AudioPart = z.looseObject({
  type: z.literal('input_audio'),
  input_audio: z.looseObject({ data: longText(), format: label() }),
})

const neitherForm = { error: 'must be a string or a list of parts' }

const InputPart = z.discriminatedUnion('type', [TextPart, ImagePart, FilePart, AudioPart])
export type InputPart = z.infer<typeof InputPart>

const SaidPart = z.discriminatedUnion('type', [
  TextPart,
  z.looseObject({ type: z.literal('refusal'), refusal: text }),
])
export type SaidPart = z.infer<typeof SaidPart>

const given = z.union([text, z.array(InputPart).max(MAX_PARTS)], neitherForm)
const message = z.literal('message').nullish()

const Message = z.discriminatedUnion('role', [
  z.looseObject({ type: message, role: z.enum(['user', 'system', 'developer']), content: given }),
  z.looseObject({
    type: message,
    role: z.literal('assistant'),
    content: z.union([text, z.array(SaidPart).max(MAX_PARTS)], neitherForm),
  }),
])

const FunctionCall = z.looseObject({
  type: z.literal('function_call'),
  call_id: foreignId().min(1),
  name: toolName,
  arguments: toolArguments,
})
export type FunctionCall = z.infer<typeof FunctionCall>

/** Accepts reasoning from earlier turns, and ignores it. */
const InputItem = z
  .discriminatedUnion(
    'type',
    [
      Message,
      FunctionCall,
      z.looseObject({ type: z.literal('function_call_output'), call_id: foreignId(), output: given }),
      z.looseObject({ type: z.literal('reasoning') }),
      z.looseObject({ type: z.literal('item_reference'), id: reference() }),
    ],
    {
      error: ({ code }) =>
        code === 'invalid_union'
          ? 'must be message, function_call, function_call_output, reasoning or item_reference'
          : undefined,
    },
  )
  .meta({ id: 'ResponseInputItem' })
export type InputItem = z.infer<typeof InputItem>

const FunctionTool = z.looseObject({
  type: z.literal('function', { error: "must be 'function'; other tools are not supported" }),
  name: toolName,
  description: text.nullish(),
  parameters: jsonObject().nullish(),
  strict: z.boolean().nullish(),
})
export type FunctionTool = z.infer<typeof FunctionTool>

const NamedFunction = z.looseObject({ type: z.literal('function'), name: label() })

const ToolChoice = z.union(
  [
    z.enum(['none', 'auto', 'required']),
    z.discriminatedUnion('type', [
      NamedFunction,
      z.looseObject({
        type: z.literal('allowed_tools'),
        mode: z.enum(['auto', 'required']),
        tools: z.array(NamedFunction).max(MAX_TOOLS),
      }),
    ]),
  ],
  { error: 'must be none, auto, required, or an object with function names' },
)
export type ToolChoice = z.infer<typeof ToolChoice>

const TextFormat = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('text') }),
  z.looseObject({ type: z.literal('json_object') }),
  z.looseObject({
    type: z.literal('json_schema'),
    name: label(),
    schema: jsonObject(),
    description: text.nullish(),
    strict: z.boolean().nullish(),
  }),
])
export type TextFormat = z.infer<typeof TextFormat>

const Metadata = recordOf(z.string().max(64), z.string().max(512), MAX_METADATA)

const { temperature, top_p, stream, parallel_tool_calls, top_logprobs, user, model } = ChatRequest.shape
const word = label().nullish()
const positiveInteger = z.int().positive().nullish()

/**
 * Validates the fields that the server uses, forwards or limits. Ignores other fields of requests with a
 * parent key.
 */
export const ResponsesRequest = z
  .looseObject({
    model,
    input: z
      .union([text, z.array(InputItem).max(MAX_MESSAGES)], { error: 'must be a string or a list of items' })
      .nullish()
      .meta({ description: 'Required, except to continue an interrupted response.' }),
    instructions: text.nullish(),
    tools: z.array(FunctionTool).max(MAX_TOOLS).nullish(),
    tool_choice: ToolChoice.nullish(),
    parallel_tool_calls,
    max_tool_calls: positiveInteger,
    temperature,
    top_p,
    max_output_tokens: positiveInteger,
    text: z.looseObject({ format: TextFormat.nullish(), verbosity: word }).nullish(),
    reasoning: z.looseObject({ effort: word, summary: word }).nullish(),
    top_logprobs,
    include: z.array(label()).max(MAX_INCLUDED).nullish(),
    metadata: Metadata.nullish(),
    user,
    safety_identifier: word,
    prompt_cache_key: word,
    prompt_cache_retention: word,
    service_tier: word,
    truncation: z.enum(['auto', 'disabled']).nullish(),
    store: z.boolean().nullish().meta({
      description:
        "Whether to store the response; by default, the agent's or the operator's setting applies.",
    }),
    stream,
    stream_options: z.looseObject({ include_obfuscation: z.boolean().nullish() }).nullish(),
    previous_response_id: reference().nullish().meta({
      description: 'Id of a stored response; its input and output precede this input.',
    }),
    conversation: z
      .union([reference(), z.looseObject({ id: reference() })], {
        error: 'must be an id, or an object with an id',
      })
      .nullish()
      .meta({ description: 'A stored conversation; its items precede this input.' }),
    prompt: z.null({ error: 'must be null, because the server stores no prompts' }).optional(),
    background: z.boolean().nullish().meta({
      description:
        'Whether to return immediately and run the response in the background; requires that the response is stored.',
    }),
  })
  .meta({ id: 'ResponsesRequest' })
export type ResponsesRequest = z.infer<typeof ResponsesRequest>

const { instructions, tools, tool_choice, max_output_tokens, metadata, background } = ResponsesRequest.shape

/** The settings that a continuation can override; all others come from its turn's request. */
export const TurnContinuation = TurnReference.extend({
  stream,
  background,
  instructions,
  tools,
  tool_choice,
  temperature,
  top_p,
  max_output_tokens,
  metadata,
}).strict()
export type TurnContinuation = z.infer<typeof TurnContinuation>

export const ResponseReference = z.object({
  response_id: reference().meta({ description: 'Response id: `resp_` followed by 24 characters.' }),
})

export const ResponseQuery = ResponseReference.extend({
  stream: z
    .union([z.boolean(), z.enum(['true', 'false']).transform((text) => text === 'true')])
    .optional()
    .meta({
      override: { type: 'boolean' },
      description: "Whether to send the response's events again.",
    }),
  starting_after: z.int().min(0).optional().meta({
    description: 'Sequence number; sends only the events after it. Requires `stream=true`.',
  }),
})

export const InputItemsQuery = ResponseReference.extend({
  limit: z.int().min(1).max(100).default(20).meta({ description: 'Maximum number of items to return.' }),
  order: z.enum(['asc', 'desc']).default('desc'),
  after: reference()
    .optional()
    .meta({ description: 'Id of an item; returns only items after it in the list.' }),
})

export const ResponseDeleted = z
  .strictObject({ id: z.string(), object: z.literal('response'), deleted: z.literal(true) })
  .meta({ id: 'ResponseDeleted' })
