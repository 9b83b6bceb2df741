/** Defines the tRPC chat schemas for the console's playground. */
import { z } from 'zod'
import { DefinitionBody } from '../agents/schema.ts'
import { ChatChunk, ChatRequest } from '../providers/chat-api.ts'

/** The playground's options. Agent keys, which are public, cannot use them. */
const PlaygroundOptions = z.strictObject({
  draft: DefinitionBody.optional().meta({ description: 'Definition to use instead of the saved one.' }),
  is_traced: z
    .boolean()
    .default(false)
    .meta({ description: 'Whether to send the steps of the turn, as chunks without choices.' }),
})
export type PlaygroundOptions = z.infer<typeof PlaygroundOptions>

export const StreamRequest = ChatRequest.extend({ trial: PlaygroundOptions.optional() })
export type StreamRequest = z.infer<typeof StreamRequest>

export const TurnStep = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('answering'),
    provider: z.string(),
    model: z.string(),
    attempts: z.int(),
    is_fallback: z.boolean(),
  }),
  z.strictObject({
    type: z.literal('tool_call'),
    call_id: z.string(),
    name: z.string(),
    arguments: z.string(),
  }),
  z.strictObject({ type: z.literal('tool_result'), call_id: z.string(), content: z.string() }),
])
export type TurnStep = z.infer<typeof TurnStep>

const StreamChunk = ChatChunk.extend({ step: TurnStep.optional() })
export type StreamChunk = z.infer<typeof StreamChunk>
