/** The parts of the OpenAPI document that operations share: tags, errors, headers, security. */
import { z } from 'zod'
import { isOpenToOrigins } from '../http/response.ts'
import { type ErrorShape, errorShapeOf, isAboutArtifacts } from './errors.ts'
import type { CallerKind } from './operation.ts'
import type { RestOperation } from './routes.ts'

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

export const limitHeaders = {
  'X-RateLimit-Limit': { description: 'Requests a minute.', schema: wholeNumber },
  'X-RateLimit-Remaining': { description: 'Requests left in this minute.', schema: wholeNumber },
  'X-RateLimit-Reset': { description: 'Unix seconds: when the next minute begins.', schema: wholeNumber },
}
export const retryAfter = { 'Retry-After': { description: 'Seconds to wait.', schema: wholeNumber } }

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

const securityOf: Readonly<Record<CallerKind, string>> = {
  parent: 'parentKey',
  agent: 'agentKey',
  token: 'artifactToken',
}

export const securitySchemes = {
  parentKey: { type: 'http', scheme: 'bearer', description: 'A parent key (`svc_…`): for servers only.' },
  agentKey: {
    type: 'http',
    scheme: 'bearer',
    description: 'An agent key (`agnt_key-…`): may stand in a page.',
  },
  artifactToken: {
    type: 'http',
    scheme: 'bearer',
    description:
      'A token of `POST /v1/artifacts`: for one artifact and those that belong to it, to upload or to view.',
  },
  artifactTokenInAddress: {
    type: 'apiKey',
    in: 'query',
    name: 'token',
    description: 'The same, in the address of what is only read.',
  },
  forwardedIdentity: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Email',
    description:
      'Set by a proxy that the operator trusts (`PARLEY_TRUST_FORWARDED_AUTH`), never by a client. A call that changes something also needs `X-Requested-With`, an `Origin` of this service or `Sec-Fetch-Site: same-origin`, and a body in JSON.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'parley_session',
    description:
      'Set by `POST /v1/manager/sign-in` where no proxy signs people in (`__Host-parley_session` on encrypted pages). What a call that changes something needs besides is the same.',
  },
} as const

function isForUsers(path: string): boolean {
  return isAboutArtifacts(path) || !isOpenToOrigins(path)
}

export function renderSecurity({ http, auth }: RestOperation): Record<string, string[]>[] {
  const keys = auth.needs === undefined ? auth.callers.map((caller) => securityOf[caller]) : []
  const inAddress = auth.callers.includes('token') && http.method === 'GET' ? ['artifactTokenInAddress'] : []
  const users = isForUsers(http.path) && auth.callers.length > 0 ? ['forwardedIdentity', 'session'] : []
  return [...keys, ...inAddress, ...users].map((scheme) => ({ [scheme]: [] }))
}

/** What a 403 of the operation means, if it has one. */
export function renderPermission({ http, auth }: RestOperation): Record<number, string> {
  if (auth.needs === 'user') return { 403: 'A key was sent, or another site makes the call.' }
  if (auth.needs === 'administrator') return { 403: 'The caller is no administrator.' }
  if (auth.callers.includes('token'))
    return { 403: 'The token is for something else, or the key of the wrong kind.' }
  if (errorShapeOf(http.path) === 'openai' && auth.callers.length === 1)
    return { 403: 'The key is of the wrong kind.' }
  return isOpenToOrigins(http.path) || http.method === 'GET' ? {} : { 403: 'Another site makes the call.' }
}
