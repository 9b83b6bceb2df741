/** Defines the tRPC chat schemas for the console's playground. */
import { z } from 'zod'
import { DefinitionBody } from '../agents/schema.ts'
import { ChatChunk, ChatRequest } from '../providers/chat-api.ts'

/** The playground's options. Agent keys, which are public, cannot use them. */
const PlaygroundOptions = z.strictObject({
  draft: DefinitionBody.optional().meta({ description: 'Definition to use instead of the saved one.' }),
  model: z
    .string()
    .max(200)
    .optional()
    .meta({ description: "Model to use instead of the agent's default; its model policy must allow it." }),
  is_traced: z
    .boolean()
    .default(false)
    .meta({ description: 'Whether to send the steps of the turn, as chunks without choices.' }),
})
export type PlaygroundOptions = z.infer<typeof PlaygroundOptions>

export const StreamRequest = ChatRequest.extend({ trial: PlaygroundOptions.optional() })
export type StreamRequest = z.infer<typeof StreamRequest>

/** The steps that a turn reports to a stored conversation, and to the playground. */
export type TurnStep =
  | {
      readonly type: 'tool_call'
      readonly call_id: string
      readonly name: string
      readonly arguments: string
    }
  | { readonly type: 'tool_result'; readonly call_id: string; readonly content: string }

const ModelReference = { provider: z.string(), model: z.string() }

/** Times are in milliseconds since the turn began. */
const atMs = z.number()

export const TraceStep = z.discriminatedUnion('type', [
  /** The models that the turn may use, in order; `is_degraded` is true if a budget has determined them. */
  z.strictObject({
    type: z.literal('route'),
    at_ms: atMs,
    models: z.array(z.strictObject(ModelReference)),
    is_degraded: z.boolean(),
  }),
  /** One request to a model; `at_ms` is the time of its first output or of its failure. */
  z.strictObject({
    type: z.literal('attempt'),
    ...ModelReference,
    started_ms: atMs,
    at_ms: atMs,
    is_fallback: z.boolean(),
    failure: z.strictObject({ reason: z.string(), message: z.string() }).nullable(),
  }),
  /** The model that answers, and the number of requests until its first output. */
  z.strictObject({
    type: z.literal('answering'),
    ...ModelReference,
    at_ms: atMs,
    attempts: z.int(),
    is_fallback: z.boolean(),
  }),
  /** A complete output of a model; the token counts are null if the provider does not report them. */
  z.strictObject({
    type: z.literal('model_output'),
    ...ModelReference,
    at_ms: atMs,
    prompt_tokens: z.int().nullable(),
    completion_tokens: z.int().nullable(),
    tool_calls: z.int(),
  }),
  z.strictObject({
    type: z.literal('tool_call'),
    at_ms: atMs,
    call_id: z.string(),
    name: z.string(),
    arguments: z.string(),
  }),
  z.strictObject({
    type: z.literal('tool_result'),
    at_ms: atMs,
    call_id: z.string(),
    content: z.string(),
  }),
])
export type TraceStep = z.infer<typeof TraceStep>

const StreamChunk = ChatChunk.extend({ step: TraceStep.optional() })
export type StreamChunk = z.infer<typeof StreamChunk>
