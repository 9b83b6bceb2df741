/**
 * Restricts requests made with public agent keys to chat API fields that are safe to forward to a provider.
 */
import { z } from 'zod'
import { ServiceError } from '../lib/errors.ts'
import { type Path, renderPath } from '../lib/formats/json.ts'
import { findSizeProblem, findUnsafePart, type JsonSchema } from '../lib/formats/json-schema.ts'
import { foreignId, jsonObject, label, longText } from '../lib/schema-bounds.ts'
import { validate } from '../operations/pipeline.ts'
import {
  ChatRequest,
  chatApiFields,
  MAX_MESSAGES,
  MAX_PARTS,
  MAX_STOPS,
  MAX_TOOLS,
  text,
  toolArguments,
  toolName,
} from '../providers/chat-api.ts'
import { isPlainRequest } from './plain-request.ts'

/** Limits costs, because the operator pays for every choice. */
const MAX_CHOICES = 8
const MAX_LIST = 64

const name = label().nullish()
const asSent = jsonObject().nullish()

const ContentPart = z.discriminatedUnion(
  'type',
  [
    z.object({ type: z.literal('text'), text }),
    z.object({ type: z.literal('image_url'), image_url: z.object({ url: longText(), detail: name }) }),
    z.object({
      type: z.literal('input_audio'),
      input_audio: z.object({ data: longText(), format: label() }),
    }),
    z.object({
      type: z.literal('file'),
      file: z.object({ file_data: longText().nullish(), file_id: name, filename: name }),
    }),
    z.object({ type: z.literal('refusal'), refusal: text }),
  ],
  { error: 'must be text, image_url, input_audio, file or refusal when the request uses an agent key' },
)

const content = z.union([text, z.array(ContentPart).max(MAX_PARTS)])

const ToolCall = z.object({
  id: foreignId(),
  type: z.literal('function', { error: "must be 'function' when the request uses an agent key" }),
  function: z.object({ name: label(), arguments: toolArguments }),
  // Some providers add reasoning signatures and reject calls without them.
  extra_content: asSent,
})

const Message = z.discriminatedUnion('role', [
  z.object({ role: z.enum(['system', 'developer', 'user']), content, name }),
  z.object({
    role: z.literal('assistant'),
    content: content.nullish(),
    name,
    tool_calls: z.array(ToolCall).max(MAX_PARTS).nullish(),
    refusal: text.nullish(),
    audio: z.object({ id: label() }).nullish(),
    // Some providers require the model's earlier reasoning in follow-up requests.
    reasoning: text.nullish(),
    reasoning_content: text.nullish(),
    reasoning_details: z.array(jsonObject()).max(MAX_PARTS).nullish(),
  }),
  z.object({ role: z.literal('tool'), content, name, tool_call_id: foreignId() }),
  z.object({ role: z.literal('function'), content: content.nullable(), name: label() }),
])

const functionsOnly = z.literal('function', {
  error: "must be 'function' when the request uses an agent key",
})

const Tool = z.object({
  type: functionsOnly,
  function: z.object({
    name: toolName,
    description: text.nullish(),
    parameters: asSent,
    strict: z.boolean().nullish(),
  }),
})

const NamedTool = z.object({ type: functionsOnly, function: z.object({ name: label() }) })

const ToolChoice = z.union(
  [
    z.enum(['none', 'auto', 'required', 'any']),
    NamedTool,
    z.object({
      type: z.literal('allowed_tools'),
      allowed_tools: z.object({ mode: name, tools: z.array(NamedTool).max(MAX_PARTS) }),
    }),
  ],
  { error: 'must be none, auto, required, or an object that selects functions' },
)

const { shape } = ChatRequest

/** Zod drops the fields that these objects do not list. */
export const PublicRequest = z.object({
  model: shape.model,
  messages: z.array(Message).min(1).max(MAX_MESSAGES),
  temperature: shape.temperature,
  top_p: shape.top_p,
  frequency_penalty: shape.frequency_penalty,
  presence_penalty: shape.presence_penalty,
  max_tokens: shape.max_tokens,
  max_completion_tokens: shape.max_completion_tokens,
  n: z.int().min(1).max(MAX_CHOICES, `must be at most ${MAX_CHOICES} with an agent key`).nullish(),
  seed: shape.seed,
  stream: shape.stream,
  stream_options: z
    .object({ include_usage: z.boolean().nullish(), include_obfuscation: z.boolean().nullish() })
    .nullish(),
  stop: z.union([label(), z.array(label()).max(MAX_STOPS)]).nullish(),
  tools: z.array(Tool).max(MAX_TOOLS).nullish(),
  tool_choice: ToolChoice.nullish(),
  parallel_tool_calls: shape.parallel_tool_calls,
  response_format: z
    .object({
      type: z.enum(['text', 'json_object', 'json_schema']),
      json_schema: z
        .object({
          name: label(),
          description: text.nullish(),
          schema: jsonObject().optional(),
          strict: z.boolean().nullish(),
        })
        .optional(),
    })
    .nullish(),
  logprobs: shape.logprobs,
  top_logprobs: shape.top_logprobs,
  user: shape.user,
  audio: z.object({ voice: label(), format: name }).nullish(),
  logit_bias: asSent,
  metadata: asSent,
  modalities: z.array(label()).max(MAX_LIST).nullish(),
  prediction: z.object({ type: z.literal('content'), content }).nullish(),
  prompt_cache_key: name,
  prompt_cache_retention: name,
  reasoning: z.object({ effort: name, summary: name }).nullish(),
  reasoning_effort: name,
  safety_identifier: name,
  verbosity: name,
  functions: z.null({ error: 'is not supported with an agent key; use tools' }).optional(),
  function_call: z.null({ error: 'is not supported with an agent key; use tools' }).optional(),
  web_search_options: z
    .null({ error: 'requires a parent key, because the provider charges for it' })
    .optional(),
})

/**
 * Drops `service_tier`, `store` and nested fields that the chat API does not define.
 * @throws ServiceError `invalid_value`
 */
export function toPublicRequest(request: ChatRequest): ChatRequest {
  if (isPlainRequest(request)) return request
  assertChatApiOnly(request)
  const rebuilt = validate(PublicRequest, request) as z.output<typeof PublicRequest>
  assertSafeSchemas(rebuilt)
  return rebuilt
}

/**
 * Applies the schema limits of agent definitions, because providers resolve references and evaluate patterns.
 */
function assertSafeSchemas({ tools, response_format: format }: z.output<typeof PublicRequest>): void {
  const toolSchemas = (tools ?? []).map((tool) => tool.function.parameters ?? {})
  assertSize('tools', toolSchemas)
  for (const [index, schema] of toolSchemas.entries())
    assertSafe(['tools', index, 'function', 'parameters'], schema)
  const answerSchema = format?.json_schema?.schema
  if (answerSchema === undefined) return
  const path = ['response_format', 'json_schema', 'schema']
  assertSize(renderPath(path), [answerSchema])
  assertSafe(path, answerSchema)
}

function assertSize(param: string, schemas: readonly JsonSchema[]): void {
  const problem = findSizeProblem(schemas)
  if (problem !== undefined) throw new ServiceError('invalid_value', `${param}: ${problem}`, { param })
}

function assertSafe(path: Path, schema: JsonSchema): void {
  const fault = findUnsafePart(schema)
  if (fault === undefined) return
  const param = renderPath([...path, ...fault.path])
  throw new ServiceError('invalid_value', `${param}: ${fault.problem}`, { param })
}

function assertChatApiOnly(request: ChatRequest): void {
  const param = Object.keys(request).find((field) => !chatApiFields.has(field))
  if (param === undefined) return
  throw new ServiceError('invalid_value', `${param}: is not a field of the chat API`, {
    param,
    code: 'unknown_parameter',
  })
}
