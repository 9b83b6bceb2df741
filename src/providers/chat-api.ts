/** Defines the chat API schemas: requests, completions and chunks. */
import { z } from 'zod'
import { foreignId, jsonObject, label, modelId } from '../lib/schema-bounds.ts'

export const MAX_MESSAGES = 2048
export const MAX_TEXT_LENGTH = 2 * 1024 * 1024
export const MAX_TOOLS = 128
/** Maximum number of content parts or tool calls in a message, and of tools in `allowed_tools`. */
export const MAX_PARTS = 2048
export const MAX_STOPS = 64

export const text = z.string().max(MAX_TEXT_LENGTH)
export const toolArguments = z.string().max(256 * 1024)

/** One content part of a message; parts of unknown types pass through unchanged. */
const ContentPart = z
  .looseObject({ type: label(), text: text.optional() })
  .refine((part) => part.type !== 'text' || part.text !== undefined, {
    path: ['text'],
    message: 'is required in a text part',
  })

const content = z.union([text, z.array(ContentPart).max(MAX_PARTS)])

const ToolCall = z
  .looseObject({
    id: foreignId(),
    type: label(),
    function: z.looseObject({ name: label(), arguments: toolArguments }).optional(),
  })
  .meta({ id: 'ToolCall' })

/** Fields that make an assistant message valid without content. */
const answerFields = [
  'refusal',
  'audio',
  'function_call',
  'reasoning',
  'reasoning_content',
  'reasoning_details',
]

function hasAnswer(message: {
  content?: unknown
  tool_calls?: readonly unknown[] | null | undefined
}): boolean {
  const { content: said, tool_calls: calls, ...fields }: Record<string, unknown> & typeof message = message
  const hasCalls = calls != null && calls.length > 0
  return said != null || hasCalls || answerFields.some((name) => fields[name] != null)
}

export const ChatMessage = z
  .discriminatedUnion('role', [
    z.looseObject({ role: z.literal('system'), content }),
    z.looseObject({ role: z.literal('developer'), content }),
    z.looseObject({ role: z.literal('user'), content }),
    z
      .looseObject({
        role: z.literal('assistant'),
        content: content.nullish(),
        tool_calls: z.array(ToolCall).max(MAX_PARTS).nullish(),
      })
      .refine(hasAnswer, {
        path: ['content'],
        message: 'is required in an assistant message without tool_calls',
      }),
    z.looseObject({ role: z.literal('tool'), content, tool_call_id: foreignId() }),
    z.looseObject({ role: z.literal('function'), content: content.nullable(), name: label() }),
  ])
  .meta({ id: 'ChatMessage' })
export type ChatMessage = z.infer<typeof ChatMessage>

const wrongToolName = 'must be 1 to 128 letters, digits, _, - or .'
export const toolName = z
  .string()
  .max(128, wrongToolName)
  .regex(/^[A-Za-z0-9_.-]{1,128}$/, wrongToolName)

export const ChatTool = z
  .looseObject({
    type: label(),
    function: z
      .looseObject({
        name: toolName,
        description: text.nullish(),
        parameters: jsonObject().nullish(),
      })
      .optional(),
  })
  .refine((tool) => tool.type !== 'function' || tool.function !== undefined, {
    path: ['function'],
    message: 'is required in a function tool',
  })
  .meta({ id: 'ChatTool' })
export type ChatTool = z.infer<typeof ChatTool>

const named = z.looseObject({ name: label() }).optional()

/** Accepts the four standard forms of `tool_choice` and the forms that other providers add. */
const ToolChoice = z.union([
  label(),
  z.looseObject({
    type: label(),
    function: named,
    custom: named,
    allowed_tools: z
      .looseObject({ tools: z.array(z.looseObject({ function: named, custom: named })).max(MAX_PARTS) })
      .optional(),
  }),
])

const positiveInteger = z.int().positive().nullish()
const flag = z.boolean().nullish()

/**
 * Validates the fields that the service uses or limits, and passes all others through; `chatApiFields`
 * restricts requests with agent keys further.
 */
export const ChatRequest = z
  .looseObject({
    model: modelId().nullish(),
    messages: z.array(ChatMessage).min(1).max(MAX_MESSAGES),
    temperature: z.number().min(0).max(2).nullish(),
    top_p: z.number().min(0).max(1).nullish(),
    frequency_penalty: z.number().min(-2).max(2).nullish(),
    presence_penalty: z.number().min(-2).max(2).nullish(),
    max_tokens: positiveInteger,
    max_completion_tokens: positiveInteger,
    n: z.int().min(1).max(128).nullish(),
    seed: z.int().nullish(),
    stream: flag,
    stream_options: z.looseObject({ include_usage: flag }).nullish(),
    stop: z.union([label(), z.array(label()).max(MAX_STOPS)]).nullish(),
    tools: z.array(ChatTool).max(MAX_TOOLS).nullish(),
    tool_choice: ToolChoice.nullish(),
    parallel_tool_calls: flag,
    response_format: z.looseObject({ type: label() }).nullish(),
    logprobs: flag,
    top_logprobs: z.int().min(0).max(20).nullish(),
    user: label().nullish(),
  })
  .meta({ id: 'ChatRequest' })
export type ChatRequest = z.infer<typeof ChatRequest>

const uncheckedFields = [
  'audio',
  'function_call',
  'functions',
  'logit_bias',
  'metadata',
  'modalities',
  'prediction',
  'prompt_cache_key',
  'prompt_cache_retention',
  'reasoning',
  'reasoning_effort',
  'safety_identifier',
  'service_tier',
  'store',
  'verbosity',
  'web_search_options',
] as const

/**
 * The only fields allowed with an agent key, because the key is public and other fields could control the
 * provider. See `chat/public-request.ts`.
 */
export const chatApiFields: ReadonlySet<string> = new Set([
  ...Object.keys(ChatRequest.shape),
  ...uncheckedFields,
])

export const Usage = z
  .looseObject({
    prompt_tokens: z.int(),
    completion_tokens: z.int(),
    total_tokens: z.int(),
    cost: z.number().optional().meta({
      description: 'Cost in US dollars; only with a parent key, if the model has a price.',
    }),
    cost_details: z
      .looseObject({ input: z.number(), output: z.number(), other: z.number() })
      .optional()
      .meta({ description: 'Breakdown of `cost`, in US dollars.' }),
  })
  .meta({ id: 'Usage' })
export type Usage = z.infer<typeof Usage>

const AnsweredToolCall = z.looseObject({
  id: z.string(),
  type: z.string(),
  function: z.looseObject({ name: z.string(), arguments: z.string() }).optional(),
})

export const ChatCompletion = z
  .looseObject({
    id: z.string(),
    object: z.literal('chat.completion'),
    created: z.int(),
    model: z.string(),
    choices: z.array(
      z.looseObject({
        index: z.int(),
        message: z.looseObject({
          role: z.literal('assistant'),
          content: z.string().nullable(),
          tool_calls: z.array(AnsweredToolCall).optional(),
        }),
        finish_reason: z.string(),
      }),
    ),
    usage: Usage,
  })
  .meta({ id: 'ChatCompletion' })
export type ChatCompletion = z.infer<typeof ChatCompletion>

export const ChatChunk = z
  .looseObject({
    id: z.string(),
    object: z.literal('chat.completion.chunk'),
    created: z.int(),
    model: z.string(),
    choices: z.array(
      z.looseObject({
        index: z.int(),
        delta: z.looseObject({
          role: z.literal('assistant').optional(),
          content: z.string().nullish(),
          tool_calls: z
            .array(
              z.looseObject({
                index: z.int(),
                id: z.string().optional(),
                type: z.string().optional(),
                function: z
                  .looseObject({ name: z.string().optional(), arguments: z.string().optional() })
                  .optional(),
              }),
            )
            .optional(),
        }),
        finish_reason: z.string().nullish(),
      }),
    ),
    usage: Usage.nullish(),
  })
  .meta({ id: 'ChatChunk' })
export type ChatChunk = z.infer<typeof ChatChunk>

export interface AnswerNames {
  readonly id: string
  readonly created: number
  readonly model: string
}
