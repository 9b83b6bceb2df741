/** Generates the OpenAPI document from the operation records. */

import { z } from 'zod'
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiPathsObject } from 'zod-openapi'
import packageJson from '../../package.json' with { type: 'json' }
import { isAboutArtifacts, isOpenToOrigins } from '../http/response.ts'
import { type ErrorShape, errorShapeOf } from './errors.ts'
import type { CallerKind, RequestOptions } from './operation.ts'
import type { RestOperation } from './rest.ts'
import { definitionFormats } from './rest.ts'

const commonFailures: Readonly<Record<number, string>> = {
  400: 'The request is malformed or a value is not allowed.',
  500: 'Something went wrong on our side.',
}
const accessFailures: Readonly<Record<number, string>> = {
  401: 'The key is missing or not valid.',
  429: 'Too many requests; `Retry-After` says how long to wait.',
}
const bodyFailures: Readonly<Record<number, string>> = {
  408: 'The body did not arrive in time.',
  413: 'The body is too large.',
  415: 'The media type is not accepted.',
}

export function renderOpenapi(
  operations: readonly RestOperation[],
  otherPaths: ZodOpenApiPathsObject,
): ReturnType<typeof createDocument> {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {}
  for (const operation of operations) {
    const { path, method } = operation.http
    paths[path] = { ...paths[path], [method.toLowerCase()]: renderOperation(operation) }
  }
  return createDocument({
    openapi: '3.1.0',
    info: {
      title: 'Parley',
      version: packageJson.version,
      description:
        'Agents, and a chat API that clients of the well-known one can use by changing the address.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'This server' }],
    tags,
    paths: { ...paths, ...otherPaths } as ZodOpenApiPathsObject,
    components: { securitySchemes, schemas: eventSchemas(operations) },
  })
}

function renderOperation(operation: RestOperation): ZodOpenApiOperationObject {
  const { id, auth, docs, response = {} } = operation
  const answer = renderAnswer(operation)
  if (response.events !== undefined) {
    const contentSchema = { $ref: `#/components/schemas/${idOf(response.events)}` }
    const schema = { type: 'string', contentMediaType: 'application/json', contentSchema } as const
    answer['text/event-stream'] = { schema }
  }
  return {
    operationId: id,
    tags: [operation.tag],
    summary: docs.summary,
    ...(docs.description === undefined ? {} : { description: docs.description }),
    security: renderSecurity(operation),
    ...renderInput(operation),
    responses: {
      [String(response.status ?? 200)]: {
        description: 'Success',
        headers: auth.isUncounted ? protocolHeaders : limitHeaders,
        content: answer,
      },
      ...(response.download ? downloadAnswers : {}),
      ...renderFailures(operation),
    },
  } as ZodOpenApiOperationObject
}

function renderAnswer({ response = {}, output }: RestOperation): Record<string, object> {
  if (response.page !== undefined) return page
  return response.download
    ? { 'application/octet-stream': { schema: binary } }
    : { 'application/json': { schema: output } }
}

function renderInput({
  http,
  request = {},
  response,
  input,
}: RestOperation): Partial<ZodOpenApiOperationObject> {
  const { shape } = input as z.ZodObject
  const headers = Object.entries(request.headers ?? {})
  const isInPath = (field: string) => http.path.includes(`{${field}}`)
  const isElsewhere = (field: string) =>
    isInPath(field) || Object.values(request.headers ?? {}).includes(field)
  const others = Object.keys(shape).filter((field) => !isElsewhere(field))
  const takesBody = http.method === 'POST' || http.method === 'PUT'
  const fields = (names: readonly (readonly [string, string])[]) =>
    z.object(Object.fromEntries(names.map(([name, field]) => [name, shape[field] as z.ZodType])))
  const same = (names: readonly string[]) => fields(names.map((name) => [name, name] as const))
  const inPath = Object.keys(shape).filter(isInPath)
  return {
    requestParams: {
      ...(inPath.length > 0 ? { path: same(inPath) } : {}),
      ...(headers.length > 0 ? { header: fields(headers) } : {}),
      ...(response?.download ? { header: downloadConditions } : {}),
      ...(!takesBody && others.length > 0 ? { query: same(others) } : {}),
    },
    ...(takesBody && others.length > 0
      ? { requestBody: renderBody(request, request.bodySchema ?? input) }
      : {}),
  }
}

function renderBody(request: RequestOptions, schema: z.ZodType) {
  if (request.upload !== undefined)
    return { required: true, content: { 'multipart/form-data': { schema, encoding } } }
  const raw = request.body === 'definition' ? Object.keys(definitionFormats) : []
  return {
    required: !schema.safeParse({}).success,
    content: {
      'application/json': { schema },
      ...Object.fromEntries(raw.map((mediaType) => [mediaType, { schema: { type: 'string' as const } }])),
    },
  }
}

function renderFailures(operation: RestOperation): Record<string, object> {
  const { http, auth, docs, response } = operation
  const takesBody = http.method === 'POST' || http.method === 'PUT'
  const failures = {
    ...commonFailures,
    ...(auth.callers.length > 0 ? accessFailures : {}),
    ...(takesBody ? bodyFailures : {}),
    ...renderPermission(operation),
    ...docs.failures,
  }
  const schema = errorSchemas[errorShapeOf(http.path)]
  const content = response?.page === undefined ? { 'application/json': { schema } } : page
  const limits = auth.isUncounted ? {} : limitHeaders
  return Object.fromEntries(
    Object.entries(failures).map(([status, description]) => [
      status,
      {
        description,
        ...(status === '429' ? { headers: { ...limits, ...retryAfter } } : {}),
        content,
      },
    ]),
  )
}

/** A form sends objects field by field: `expires_after[seconds]`. */
const encoding = { expires_after: { style: 'deepObject', explode: true } } as const

const page = { 'text/html': { schema: { type: 'string' } } } as const
const binary = { type: 'string', format: 'binary' } as const

/** RFC 9110, 13 and 14. */
const downloadConditions = z.object({
  Range: z.string().optional().meta({ description: 'One range of bytes, such as `bytes=0-1023`.' }),
  'If-Range': z.string().optional().meta({ description: 'The ETag the range belongs to.' }),
  'If-None-Match': z.string().optional().meta({ description: 'The ETag of what is there already.' }),
})

const downloadAnswers = {
  206: {
    description: 'The range that was asked for.',
    headers: { 'Content-Range': { description: 'Which bytes, of how many.', schema: { type: 'string' } } },
    content: { 'application/octet-stream': { schema: binary } },
  },
  304: { description: 'The bytes are those named in `If-None-Match`.' },
} as const

/** The generator does not find events by itself, because only a string schema refers to them. */
function eventSchemas(operations: readonly RestOperation[]): Record<string, z.ZodType> {
  const events = operations.flatMap(({ response }) => response?.events ?? [])
  return Object.fromEntries(events.map((schema) => [idOf(schema), schema]))
}

function idOf(schema: z.ZodType): string {
  const id = schema.meta()?.id
  if (id === undefined) throw new Error('an event schema needs an id')
  return id
}

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

const limitHeaders = {
  'X-RateLimit-Limit': { description: 'Requests a minute.', schema: wholeNumber },
  'X-RateLimit-Remaining': { description: 'Requests left in this minute.', schema: wholeNumber },
  'X-RateLimit-Reset': { description: 'Unix seconds: when the next minute begins.', schema: wholeNumber },
}
export const retryAfter = { 'Retry-After': { description: 'Seconds to wait.', schema: wholeNumber } }

export const protocolHeaders = {
  'Protocol-Version': { description: 'Of uploads and artifacts: 2.', schema: wholeNumber },
}

const tags = [
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

const securitySchemes = {
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

function renderSecurity({ http, auth }: RestOperation): Record<string, string[]>[] {
  const keys = auth.needs === undefined ? auth.callers.map((caller) => securityOf[caller]) : []
  const inAddress = auth.callers.includes('token') && http.method === 'GET' ? ['artifactTokenInAddress'] : []
  const isForUsers = isAboutArtifacts(http.path) || !isOpenToOrigins(http.path)
  const users = isForUsers && auth.callers.length > 0 ? ['forwardedIdentity', 'session'] : []
  return [...keys, ...inAddress, ...users].map((scheme) => ({ [scheme]: [] }))
}

function renderPermission({ http, auth }: RestOperation): Record<number, string> {
  if (auth.needs === 'user') return { 403: 'A key was sent, or another site makes the call.' }
  if (auth.needs === 'administrator') return { 403: 'The caller is no administrator.' }
  if (auth.callers.includes('token'))
    return { 403: 'The token is for something else, or the key of the wrong kind.' }
  if (errorShapeOf(http.path) === 'openai' && auth.callers.length === 1)
    return { 403: 'The key is of the wrong kind.' }
  return isOpenToOrigins(http.path) || http.method === 'GET' ? {} : { 403: 'Another site makes the call.' }
}
