/** Generates the OpenAPI document from the operation records. */
import { z } from 'zod'
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiPathsObject } from 'zod-openapi'
import packageJson from '../../package.json' with { type: 'json' }
import { errorShapeOf } from './errors.ts'
import {
  errorSchemas,
  limitHeaders,
  protocolHeaders,
  renderPermission,
  renderSecurity,
  retryAfter,
  securitySchemes,
  tags,
} from './openapi-parts.ts'
import type { RequestOptions } from './operation.ts'
import { definitionFormats } from './rest.ts'
import type { RestOperation } from './routes.ts'

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

/** Splits the input's fields into path, query, headers and body. */
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
