/** What the document says of more than one operation: tags, errors, headers. */
import { z } from 'zod'
import type { ErrorShape } from './errors.ts'

export const AgentError = z
  .strictObject({ error: z.string(), code: z.string().optional() })
  .meta({ id: 'AgentError', description: 'How everything under /v1/agents says that it failed.' })

export const ChatError = z
  .strictObject({
    error: z.strictObject({
      message: z.string(),
      type: z.string(),
      param: z.string().nullable(),
      code: z.string(),
    }),
  })
  .meta({ id: 'Error', description: 'How everything else under /v1 says that it failed.' })

export const ArtifactError = z.strictObject({ ok: z.literal(false), error: z.string() }).meta({
  id: 'ArtifactError',
  description: 'How everything about uploads and artifacts outside /v1 says that it failed.',
})

export const errorSchemas: Readonly<Record<ErrorShape, z.ZodType>> = {
  agent: AgentError,
  openai: ChatError,
  artifact: ArtifactError,
}

const wholeNumber = { type: 'integer' } as const

/** Contract: Limits. */
export const limitHeaders = {
  'X-RateLimit-Limit': { description: 'Requests a minute.', schema: wholeNumber },
  'X-RateLimit-Remaining': { description: 'Requests left in this minute.', schema: wholeNumber },
  'X-RateLimit-Reset': { description: 'Unix seconds: when the next minute begins.', schema: wholeNumber },
}
export const retryAfter = { 'Retry-After': { description: 'Seconds to wait.', schema: wholeNumber } }

/** Decision: 9 (`Protocol-Version`). */
export const protocolHeaders = {
  'Protocol-Version': { description: 'Of uploads and artifacts: 2.', schema: wholeNumber },
}

export const tags = [
  { name: 'Agents', description: 'What an agent is: its definition, its versions and its key.' },
  { name: 'Chat', description: 'Conversations, as any client of the well-known chat API sends them.' },
  { name: 'Artifacts', description: 'What was uploaded in pieces: how it is doing, and its bytes.' },
  { name: 'Uploads', description: 'The resumable upload protocol tus 1.0.0.' },
  { name: 'Files', description: 'Bytes kept for the calling parent key.' },
  { name: 'Embeddings', description: 'Texts as vectors, near each other where the texts are alike.' },
  { name: 'Keys', description: 'The key a caller presents.' },
  { name: 'Manager', description: 'The console: its user, their keys, and their agents.' },
  {
    name: 'Administration',
    description: 'For administrators: every user and key, what was used and what was done.',
  },
  { name: 'Models', description: 'What a request may name as its model: models and agents.' },
  { name: 'Usage', description: 'What the calls of a parent key have taken.' },
]
