/** Generates the OpenAPI document from the operations. */

import { z } from 'zod'
import {
  createDocument,
  type ZodOpenApiComponentsObject,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
} from 'zod-openapi'
import packageJson from '../../package.json' with { type: 'json' }
import { isAboutArtifacts, isOpenToOrigins } from '../http/response.ts'
import { type ErrorShape, errorShapeOf } from './errors.ts'
import type { CallerKind, RequestOptions } from './operation.ts'
import type { RestOperation } from './rest.ts'
import { definitionFormats } from './rest.ts'

const commonFailures: Readonly<Record<number, string>> = {
  400: 'The request is malformed or contains an invalid value.',
  500: 'Internal server error.',
}
const accessFailures: Readonly<Record<number, string>> = {
  401: 'The API key is missing or invalid.',
  429: 'Too many requests. Retry after the number of seconds in `Retry-After`.',
}
const bodyFailures: Readonly<Record<number, string>> = {
  408: 'The request body did not arrive in time.',
  413: 'The request body is too large.',
  415: 'The media type is not supported.',
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
      description: 'Manage agents, chat through an OpenAI-compatible API, and upload files.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'This server' }],
    tags,
    paths: { ...paths, ...otherPaths } as ZodOpenApiPathsObject,
    components: {
      securitySchemes,
      schemas: { ...eventSchemas(operations), ...definitionSchemas(operations) },
    },
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
      ...(response.download ? renderDownloadAnswers(response.download) : {}),
      ...renderFailures(operation),
    },
  } as ZodOpenApiOperationObject
}

function renderAnswer({ response = {}, output }: RestOperation): Record<string, object> {
  if (response.page !== undefined) return page
  if (response.generated !== undefined) return downloadContent([response.generated])
  // The response consists only of events.
  if (output instanceof z.ZodVoid) return {}
  return response.download ? downloadContent(response.download) : { 'application/json': { schema: output } }
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
  const takesBody = ['POST', 'PUT', 'PATCH'].includes(http.method)
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
      ...Object.fromEntries(
        raw.map((mediaType) => [
          mediaType,
          { schema: isYaml(mediaType) ? definitionReference : markdownText },
        ]),
      ),
    },
  }
}

function renderFailures(operation: RestOperation): Record<string, object> {
  const { http, auth, docs, response } = operation
  const takesBody = ['POST', 'PUT', 'PATCH'].includes(http.method)
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

/** Encodes a form's object fields one by one, such as `expires_after[seconds]`. */
const encoding = { expires_after: { style: 'deepObject', explode: true } } as const

const page = { 'text/html': { schema: { type: 'string' } } } as const
const binary = { type: 'string', format: 'binary' } as const

/** The range and conditional request headers of RFC 9110, sections 13 and 14. */
const downloadConditions = z.object({
  Range: z.string().optional().meta({ description: 'A single byte range, such as `bytes=0-1023`.' }),
  'If-Range': z
    .string()
    .optional()
    .meta({ description: 'Returns the range only if the ETag still has this value.' }),
  'If-None-Match': z.string().optional().meta({ description: "ETag of the client's copy." }),
})

function renderDownloadAnswers(mediaTypes: readonly string[]) {
  const contentRange = {
    description: 'The returned range and the total size.',
    schema: { type: 'string' },
  } as const
  return {
    206: {
      description: 'The requested range.',
      headers: { 'Content-Range': contentRange },
      content: downloadContent(mediaTypes),
    },
    304: { description: 'Not modified: the ETag matches `If-None-Match`.' },
  } as const
}

function downloadContent(mediaTypes: readonly string[]) {
  return Object.fromEntries(mediaTypes.map((mediaType) => [mediaType, { schema: binary }]))
}

const DEFINITION_ID = 'AgentDefinition'
const definitionReference = { $ref: `#/components/schemas/${DEFINITION_ID}` }
const markdownText = {
  type: 'string',
  description: 'YAML front matter with the fields of the definition, followed by the instructions.',
} as const

function isYaml(mediaType: string): boolean {
  return definitionFormats[mediaType] === 'yaml'
}

type Schemas = NonNullable<ZodOpenApiComponentsObject['schemas']>

/** Adds the definition schema, which the generator does not find because it is not a Zod schema. */
function definitionSchemas(operations: readonly RestOperation[]): Schemas {
  const found = operations.find(({ request }) => request?.definitionSchema !== undefined)
  if (found?.request?.definitionSchema === undefined) return {}
  const { $schema, ...schema } = found.request.definitionSchema
  return { [DEFINITION_ID]: schema } as Schemas
}

/** Adds the event schemas, which the generator does not find because responses describe events as strings. */
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
  .meta({ id: 'AgentError', description: 'Error format of paths under /v1/agents and /v1/bin/agents.' })

export const ChatError = z
  .strictObject({
    error: z.strictObject({
      message: z.string(),
      type: z.string(),
      param: z.string().nullable(),
      code: z.string(),
      last_event_id: z.string().optional().meta({
        description: 'With `event_not_kept`: the id of the last stored event of the stream.',
      }),
      mode: z.enum(['model', 'waiting', 'person']).optional().meta({
        description: 'With `wrong_mode`: the mode of the conversation.',
      }),
      assignee: z.string().nullable().optional().meta({
        description: 'With `wrong_mode`: the person who answers; null for agent keys.',
      }),
    }),
  })
  .meta({ id: 'Error', description: 'Error format of all other paths under /v1.' })

export const ArtifactError = z.strictObject({ ok: z.literal(false), error: z.string() }).meta({
  id: 'ArtifactError',
  description: 'Error format of upload and artifact paths outside /v1.',
})

export const errorSchemas: Readonly<Record<ErrorShape, z.ZodType>> = {
  agent: AgentError,
  openai: ChatError,
  artifact: ArtifactError,
}

const wholeNumber = { type: 'integer' } as const

const limitHeaders = {
  'X-RateLimit-Limit': { description: 'Maximum number of requests per minute.', schema: wholeNumber },
  'X-RateLimit-Remaining': { description: 'Requests remaining in the current minute.', schema: wholeNumber },
  'X-RateLimit-Reset': { description: 'End of the current minute, in Unix seconds.', schema: wholeNumber },
}
export const retryAfter = {
  'Retry-After': { description: 'Seconds to wait before retrying.', schema: wholeNumber },
}

export const protocolHeaders = {
  'Protocol-Version': { description: 'Version of the upload and artifact protocol: 2.', schema: wholeNumber },
}

const tags = [
  { name: 'Agents', description: 'Manage agents, their versions and their keys.' },
  { name: 'Chat', description: 'Chat with models and agents, compatible with the OpenAI API.' },
  { name: 'Conversations', description: 'Read and change stored conversations.' },
  {
    name: 'Artifacts',
    description: 'Reserve, read and delete uploaded artifacts, and restore them from the bin.',
  },
  { name: 'Uploads', description: 'Upload files resumably with the tus 1.0.0 protocol.' },
  { name: 'Files', description: 'Store and download files that belong to a parent key.' },
  { name: 'Embeddings', description: 'Convert text to vectors whose distance indicates similarity.' },
  { name: 'Keys', description: "Check the request's API key, and manage parent keys." },
  { name: 'Manager', description: "The console API: the signed-in user, and the user's keys and agents." },
  {
    name: 'Administration',
    description: 'The administrator API: all users and keys, model providers, usage and the audit log.',
  },
  { name: 'Models', description: 'List the models and agents that a request can use.' },
  { name: 'Usage', description: 'Get the usage of a parent key.' },
  {
    name: 'Budgets',
    description: 'Limit the token usage or the cost of keys, agents, visitors and conversations.',
  },
  { name: 'Visitors', description: 'List, export and erase the visitors of your agents.' },
  { name: 'Webhooks', description: 'Send events of stored conversations to your server.' },
]

const securityOf: Readonly<Record<CallerKind, string>> = {
  parent: 'parentKey',
  agent: 'agentKey',
  token: 'artifactToken',
}

const securitySchemes = {
  parentKey: {
    type: 'http',
    scheme: 'bearer',
    description: 'A parent key (`svc_…`). Keep it on your servers.',
  },
  agentKey: {
    type: 'http',
    scheme: 'bearer',
    description: 'An agent key (`agnt_key-…`). Safe to publish on a web page.',
  },
  artifactToken: {
    type: 'http',
    scheme: 'bearer',
    description:
      'A token from `POST /v1/artifacts` that allows uploading or viewing one artifact and its related artifacts.',
  },
  artifactTokenInAddress: {
    type: 'apiKey',
    in: 'query',
    name: 'token',
    description: 'The artifact token as a query parameter, for GET and HEAD requests only.',
  },
  forwardedIdentity: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Email',
    description:
      'A trusted proxy sets this header (`PARLEY_TRUST_FORWARDED_AUTH`). Write requests also need `X-Requested-With`, an `Origin` of this server or `Sec-Fetch-Site: same-origin`, and a JSON body.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'parley_session',
    description:
      '`POST /v1/manager/sign-in` sets this cookie. Its name is `__Host-parley_session` over HTTPS. Write requests have the same requirements as with `forwardedIdentity`.',
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
  if (auth.needs === 'user') return { 403: 'The request contains an API key, or comes from another site.' }
  if (auth.needs === 'administrator') return { 403: 'The user is not an administrator.' }
  if (auth.callers.includes('token'))
    return {
      403: 'The token belongs to a different artifact or allows a different action, or the operation does not accept this kind of key.',
    }
  if (errorShapeOf(http.path) === 'openai' && auth.callers.length === 1)
    return { 403: 'The operation does not accept this kind of key.' }
  return isOpenToOrigins(http.path) || http.method === 'GET'
    ? {}
    : { 403: 'The request comes from another site.' }
}
