/** Defines the schemas of the Responses API's response object and stream events. */
import { z } from 'zod'

const token = { token: z.string(), logprob: z.number(), bytes: z.array(z.int()) }
const Logprobs = z.array(z.strictObject({ ...token, top_logprobs: z.array(z.strictObject(token)) }))
export type Logprobs = z.infer<typeof Logprobs>

const OutputText = z.strictObject({
  type: z.literal('output_text'),
  text: z.string(),
  annotations: z.array(z.never()),
  logprobs: Logprobs.meta({ description: 'Empty unless requested.' }),
})
const Refusal = z.strictObject({ type: z.literal('refusal'), refusal: z.string() })
const ReasoningText = z.strictObject({ type: z.literal('reasoning_text'), text: z.string() })

const Part = z
  .discriminatedUnion('type', [OutputText, Refusal, ReasoningText])
  .meta({ id: 'ResponseContentPart' })
export type Part = z.infer<typeof Part>

const itemStatus = z.enum(['in_progress', 'completed', 'incomplete'])

const OutputMessage = z.strictObject({
  type: z.literal('message'),
  id: z.string(),
  status: itemStatus,
  role: z.literal('assistant'),
  content: z.array(z.discriminatedUnion('type', [OutputText, Refusal])),
})

const Reasoning = z.strictObject({
  type: z.literal('reasoning'),
  id: z.string(),
  status: itemStatus,
  summary: z.array(z.never()),
  content: z.array(ReasoningText),
})

const OutputCall = z.strictObject({
  type: z.literal('function_call'),
  id: z.string(),
  status: itemStatus,
  call_id: z.string(),
  name: z.string(),
  arguments: z.string(),
})
export type OutputCall = z.infer<typeof OutputCall>

export const OutputItem = z
  .discriminatedUnion('type', [OutputMessage, Reasoning, OutputCall])
  .meta({ id: 'ResponseOutputItem' })
export type OutputItem = z.infer<typeof OutputItem>

const ResponseUsage = z
  .strictObject({
    input_tokens: z.int(),
    input_tokens_details: z.strictObject({ cached_tokens: z.int(), cache_write_tokens: z.int() }),
    output_tokens: z.int(),
    output_tokens_details: z.strictObject({ reasoning_tokens: z.int() }),
    total_tokens: z.int(),
    cost: z.number().optional().meta({
      description: 'Cost in US dollars; only with a parent key, if the model has a price.',
    }),
    cost_details: z
      .strictObject({ input: z.number(), output: z.number(), other: z.number() })
      .optional()
      .meta({ description: 'Breakdown of `cost`, in US dollars.' }),
  })
  .meta({ id: 'ResponseUsage' })
export type ResponseUsage = z.infer<typeof ResponseUsage>

const word = z.string().nullable()
const number = z.number().nullable()
const nothing = z.null()

/**
 * Fields copied from the request, or the defaults of OpenAI's API; they do not show what an agent has
 * changed. The Open Responses specification (https://www.openresponses.org) requires numbers, not null, for
 * `temperature` and `top_p`.
 */
const echo = {
  instructions: word,
  tools: z.array(z.looseObject({ type: z.literal('function'), name: z.string() })),
  tool_choice: z.union([z.string(), z.looseObject({ type: z.string() })]),
  parallel_tool_calls: z.boolean(),
  max_tool_calls: number,
  temperature: z.number(),
  top_p: z.number(),
  presence_penalty: z.literal(0),
  frequency_penalty: z.literal(0),
  max_output_tokens: number,
  text: z.looseObject({ format: z.looseObject({ type: z.string() }) }),
  reasoning: z.strictObject({ effort: word, summary: word }),
  top_logprobs: z.number(),
  metadata: z.record(z.string(), z.string()),
  user: z.string().optional(),
  safety_identifier: word,
  prompt_cache_key: word,
}

const ResponseEcho = z.strictObject(echo)
export type ResponseEcho = z.infer<typeof ResponseEcho>

export const ResponseObject = z
  .strictObject({
    id: z.string().meta({ description: '`resp_` followed by 24 characters.' }),
    object: z.literal('response'),
    created_at: z.int().meta({ description: 'Unix seconds.' }),
    completed_at: z
      .int()
      .nullable()
      .meta({ description: 'Unix seconds; null until the response is completed.' }),
    status: z.enum(['queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled']),
    error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
    incomplete_details: z
      .strictObject({ reason: z.enum(['max_output_tokens', 'content_filter', 'interrupted']) })
      .nullable(),
    model: z.string(),
    output: z.array(OutputItem),
    usage: ResponseUsage.nullable(),
    service_tier: z.string(),
    ...echo,
    store: z.boolean(),
    background: z.boolean(),
    previous_response_id: word,
    conversation: z.strictObject({ id: z.string() }).nullable(),
    // Features that this server does not support.
    truncation: z.literal('disabled'),
    prompt: nothing,
    access_programs: nothing,
  })
  .meta({ id: 'Response' })
export type ResponseObject = z.infer<typeof ResponseObject>

const place = z.int().nonnegative()

function event<Type extends string, Shape extends z.core.$ZodLooseShape>(type: Type, shape: Shape) {
  return z.strictObject({ type: z.literal(type), sequence_number: place, ...shape })
}

const response = { response: ResponseObject }
const atItem = { output_index: place, item: OutputItem }
const inItem = { output_index: place, item_id: z.string() }
const inPart = { ...inItem, content_index: place }
const part = { ...inPart, part: Part }
const delta = { ...inPart, delta: z.string() }

/** The events of a stream. */
export const ResponseEvent = z
  .discriminatedUnion('type', [
    event('response.created', response),
    event('response.in_progress', response),
    event('response.output_item.added', atItem),
    event('response.content_part.added', part),
    event('response.reasoning_text.delta', delta),
    event('response.reasoning_text.done', { ...inPart, text: z.string() }),
    event('response.output_text.delta', { ...delta, logprobs: Logprobs }),
    event('response.output_text.done', { ...inPart, text: z.string(), logprobs: Logprobs }),
    event('response.refusal.delta', delta),
    event('response.refusal.done', { ...inPart, refusal: z.string() }),
    event('response.content_part.done', part),
    event('response.function_call_arguments.delta', { ...inItem, delta: z.string() }),
    event('response.function_call_arguments.done', { ...inItem, name: z.string(), arguments: z.string() }),
    event('response.output_item.done', atItem),
    event('response.completed', response),
    event('response.incomplete', response),
    event('response.failed', response),
  ])
  .meta({ id: 'ResponseEvent' })

export type ResponseEvent = z.infer<typeof ResponseEvent>

type Numberless<Event> = Event extends unknown ? Omit<Event, 'sequence_number'> : never
export type UnnumberedEvent = Numberless<ResponseEvent>
