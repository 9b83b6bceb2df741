/** Serves the REST API: matches a request to its operation, reads the input and writes the result. */

import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { writeDownload, writeGenerated } from '../http/download.ts'
import type { UploadOptions } from '../http/form-body.ts'
import { assertAcceptable, receiveUpload } from '../http/multipart.ts'
import {
  askForBody,
  assertShortTarget,
  decodeUtf8,
  hasNoBody,
  mediaTypeOf,
  parseJson,
  readBody,
} from '../http/request.ts'
import { isOpenToOrigins, pageHeaders, pageSecurityHeaders } from '../http/response.ts'
import { DONE, eventStreamHeaders, writeEvents } from '../http/sse.ts'
import { ServiceError, toServiceError } from '../lib/errors.ts'
import type { JsonOutline } from '../lib/formats/json.ts'
import {
  chargeRequest,
  countRequest,
  limitBodyBytes,
  outlineOfBody,
  rejectCredentials,
  requestsOf,
} from './access.ts'
import type { Dependencies } from './dependencies.ts'
import { errorHeaders, renderError } from './errors.ts'
import {
  type AnyCaller,
  Download,
  EventStream,
  GeneratedFile,
  type Http,
  JsonBytes,
  type NamedOperation,
  type Operation,
  type OperationDocs,
  Page,
} from './operation.ts'
import { type Endpoint, type HttpCall, type Route, runOperation, validate } from './pipeline.ts'
import { createRouteTable } from './route-table.ts'

export type RestOperation<D = never> = Operation<D> & {
  readonly http: Http
  readonly docs: OperationDocs
  /** The operation's name in the list of operations; both paths of an operation share it. */
  readonly name: string
  /** The OpenAPI operation id; an operation with two paths has two. */
  readonly id: string
}

export function listRestOperations<D>(named: readonly NamedOperation<D>[]): RestOperation<D>[] {
  const operations = named.flatMap(({ name, operation }) => {
    const { http, docs } = operation
    if (http === undefined) return []
    if (docs === undefined) throw new Error(`${name} has a path but no docs`)
    return [{ ...operation, http, docs, name, id: name.replaceAll('.', '-') }]
  })
  return [...operations, ...operations.filter(isForConsole).map(toManagerOperation)]
}

/**
 * Returns true for operations that console users may also call: those for agents and files, and the exports
 * of usage, conversations and visitors. A form upload requires a key.
 */
function isForConsole({ http, auth, request }: RestOperation): boolean {
  const isTheirs = consolePath.test(http.path) && auth.callers.includes('parent')
  return isTheirs && request?.upload === undefined
}

const consolePath =
  /^\/v1\/(agents|bin\/agents|files|usage\/calls\.csv|conversations\/export|visitors\/\{visitor_id\}\/export)(\/|$)/

function toManagerOperation<D>(operation: RestOperation<D>): RestOperation<D> {
  const { path, method } = operation.http
  return {
    ...operation,
    http: { method, path: `/v1/manager${path.slice('/v1'.length)}` as const },
    tag: 'Manager',
    docs: {
      ...operation.docs,
      description: `The same as \`${method} ${path}\`, for console users.`,
    },
    id: `manager-${operation.id}`,
  }
}

export function createRestEndpoint<D extends Dependencies>(
  operations: readonly RestOperation<D>[],
): Endpoint<AnyCaller, D> {
  const table = createRouteTable(
    operations.map((operation) => ({
      ...operation,
      route: toRoute(operation),
      resumeRoute: toResumeRoute(operation),
    })),
  )

  return {
    find(call) {
      const { path, request } = call
      if (!/^\/(v1|artifacts|capabilities)(\/|$)/.test(path)) return undefined
      assertShortTarget(request)
      if (request.method === 'OPTIONS' && isOpenToOrigins(path)) return preflight
      try {
        const { operation, params } = table.match(request.method as string, path)
        call.params = params
        const { route, resumeRoute } = operation
        return request.headers['last-event-id'] === undefined ? route : (resumeRoute ?? route)
      } catch (failure) {
        return rejectUnmatched(call, failure)
      }
    },
  }
}

/** Answers preflights without authentication, because browsers send them without credentials. */
const preflight: Route = { auth: undefined, run: (call) => call.writePreflight() }

/**
 * Counts requests to unknown paths toward the rate limits; otherwise, keys could be guessed without limit.
 */
async function rejectUnmatched({ context }: HttpCall, failure: unknown): Promise<never> {
  const { bearer, token } = context.metadata
  const caller = await context.deps.authenticator.find(context.metadata)
  if (caller === undefined && (bearer ?? token) !== undefined) return rejectCredentials(context)
  if (caller !== undefined) await countRequest(context, caller)
  throw failure
}

function toRoute<D extends Dependencies>(operation: RestOperation<D>): Route<AnyCaller, D> {
  const { name, http, auth, request: { path: pathSchema, upload } = {}, response, input } = operation
  const { status = 200, page } = response ?? {}
  const readInput = createInputReader(operation)
  return {
    name,
    pattern: http.path,
    auth,
    schema: input,
    isPlainInput: operation.request?.isPlainInput,
    ...(pathSchema && { check: ({ params }) => void validate(pathSchema, params) }),
    parse(call) {
      if (upload !== undefined) return upload(call.context).then((options) => readForm(call, options))
      askForBody(call.request, call.response)
      return readInput(call)
    },
    run: (call) => runOperation(operation, call),
    write(call, result) {
      if (result instanceof EventStream) return writeStream(call, result)
      if (result instanceof Download) return writeDownload(result.content, call)
      if (result instanceof GeneratedFile) return writeGenerated(result.content, call)
      if (result instanceof Page) return writePage(call, 200, result)
      const body = result instanceof JsonBytes ? result.pieces : [Buffer.from(JSON.stringify(result))]
      call.writeJson(status, body)
    },
    ...(page && {
      writeFailure: (call, failure) => writePage(call, failure.status, page(failure), errorHeaders(failure)),
    }),
  }
}

/** Returns the route for a request that resumes a stream; undefined if the operation does not support it. */
function toResumeRoute<D extends Dependencies>(operation: RestOperation<D>): Route<AnyCaller, D> | undefined {
  const { resume } = operation.request ?? {}
  if (resume === undefined) return undefined
  return {
    ...toRoute(operation),
    schema: z.undefined(),
    isPlainInput: undefined,
    async parse(call) {
      askForBody(call.request, call.response)
      await readBytes(call, operation, false)
    },
    run: (call) => resume(call.context, call.signal),
  }
}

/** Receives a form's file, which is deleted after the call unless the operation commits it. */
async function readForm<D extends Dependencies>(
  call: HttpCall<AnyCaller, D>,
  { files, limit }: Pick<UploadOptions, 'files' | 'limit'>,
): Promise<unknown> {
  const { request, response, signal, deps } = call
  assertAcceptable(request, limit)
  askForBody(request, response)
  const idleMs = deps.config.timings.bodyIdleMs
  const { fields, discard } = await receiveUpload(request, { files, limit, idleMs, signal })
  call.cleanUp = discard
  return fields
}

function writePage(call: HttpCall, status: number, { html }: Page, headers: readonly string[] = []): void {
  call.writeBody(status, [Buffer.from(html)], [...pageHeaders, ...headers], pageSecurityHeaders)
}

function writeStream(call: HttpCall, { events, renderFailure }: EventStream): Promise<void> {
  return writeEvents(call.response, {
    events,
    writeHead: () => call.writeHead(200, eventStreamHeaders),
    end: renderFailure === undefined ? DONE : '',
    renderFailure: (thrown) => (renderFailure ?? renderErrorEvent)(call.logged(toServiceError(thrown))),
    heartbeatMs: call.deps.config.timings.heartbeatMs,
  })
}

function renderErrorEvent(failure: ServiceError): Uint8Array {
  return Buffer.from(`data: ${JSON.stringify(renderError(failure, 'openai'))}\n\n`)
}

const MAX_JSON_BYTES = 1024 * 1024

export const definitionFormats: Readonly<Record<string, 'yaml' | 'markdown'>> = {
  'application/yaml': 'yaml',
  'text/yaml': 'yaml',
  'application/x-yaml': 'yaml',
  'text/markdown': 'markdown',
}

/**
 * Reads the input of GET and DELETE requests from the query, and of other requests from the body, which must
 * not contain path or header fields.
 */
function createInputReader<D>(operation: RestOperation<D>): (call: HttpCall) => unknown {
  const { http, request: { headers = {}, ignoredFields = [] } = {} } = operation
  const headerFields = Object.entries(headers)
  if (http.method === 'GET' || http.method === 'DELETE') {
    const numbers = findNumericFields(operation.input)
    return ({ request, params }) => ({
      ...readQuery(request, numbers),
      ...readHeaderFields(request, headerFields),
      ...params,
    })
  }
  const fromHeaders = Object.values(headers)
  return async (call) => {
    const { request, params } = call
    const format = formatOf(request, operation)
    const body =
      format === undefined
        ? {}
        : toInput(await readBytes(call, operation, format !== 'json'), format, operation)
    if (typeof body !== 'object' || body === null || Array.isArray(body)) return body
    const fields: Record<string, unknown> = body as Record<string, unknown>
    for (const field of ignoredFields) delete fields[field]
    for (const param in params) assertNoField(fields, param)
    for (const param of fromHeaders) assertNoField(fields, param)
    return Object.assign(fields, readHeaderFields(request, headerFields), params)
  }
}

function assertNoField(fields: Readonly<Record<string, unknown>>, param: string): void {
  if (Object.hasOwn(fields, param))
    throw new ServiceError('invalid_value', `${param} is not a field of the request body`, { param })
}

type BodyFormat = 'json' | 'yaml' | 'markdown'

/** Returns the format of the body; undefined without a body. */
function formatOf<D>(request: IncomingMessage, operation: RestOperation<D>): BodyFormat | undefined {
  const mediaType = mediaTypeOf(request)
  if (mediaType === 'application/json') return 'json'
  const isDefinition = operation.request?.body === 'definition'
  const format = isDefinition ? definitionFormats[mediaType] : undefined
  if (format !== undefined) return format
  if (mediaType === '' && hasNoBody(request)) return undefined
  throw rejectMediaType(mediaType, isDefinition)
}

function toInput<D>(
  { bytes, outline }: { readonly bytes: Buffer; readonly outline: JsonOutline | undefined },
  format: BodyFormat,
  { request }: RestOperation<D>,
): unknown {
  if (format !== 'json') return { yaml: decodeUtf8(bytes), format }
  return bytes.length === 0 ? {} : parseJson(bytes, request?.maxJsonValues, outline)
}

/** Reads the body, and charges a large one as several requests. */
async function readBytes<D>(
  { request, context, deps }: HttpCall,
  { auth, request: options }: RestOperation<D>,
  isDefinition: boolean,
) {
  const { config, clock } = deps
  const caller = auth.callers.length === 0 ? undefined : context.caller
  const bytes = await readBody(
    request,
    {
      maxBytes: await limitBodyBytes(
        deps,
        request,
        caller,
        options?.maxBodyBytes?.(config) ?? MAX_JSON_BYTES,
      ),
      totalMs: config.timings.bodyMs,
      idleMs: config.timings.bodyIdleMs,
    },
    clock,
  )
  const outline = isDefinition ? undefined : outlineOfBody(bytes, options ?? {})
  if (caller !== undefined && !auth.isUncounted) {
    const charging = chargeRequest(context, caller, requestsOf(bytes.length, outline, options ?? {}))
    if (charging !== undefined) await charging
  }
  return { bytes, outline }
}

function readHeaderFields(
  { headers }: IncomingMessage,
  headerFields: readonly [header: string, field: string][],
): Record<string, unknown> {
  const fields: Record<string, unknown> = {}
  for (const [header, field] of headerFields) {
    if (headers[header] !== undefined) fields[field] = headers[header]
  }
  return fields
}

/**
 * Maps each numeric field to the error for a value that is not a number, or to undefined if the field also
 * accepts text.
 */
function findNumericFields(input: z.ZodType): ReadonlyMap<string, string | undefined> {
  const { shape } = input as z.ZodObject
  const fields = Object.entries(shape as Record<string, z.ZodType>)
  return new Map(
    fields
      .filter(([, field]) => field.safeParse(1).success)
      .map(([name, field]) => [name, describeInteger(field)]),
  )
}

function describeInteger(field: z.ZodType): string | undefined {
  const { type, minimum, maximum } = z.toJSONSchema(field, { io: 'input', unrepresentable: 'any' })
  if (type !== 'integer') return undefined
  return maximum === Number.MAX_SAFE_INTEGER
    ? `must be an integer of at least ${minimum}`
    : `must be an integer between ${minimum} and ${maximum}`
}

/**
 * Reads the query; converts numeric fields that consist of digits to numbers.
 * @throws ServiceError `invalid_value` if a field that accepts only numbers contains other text
 */
function readQuery(
  { url = '' }: IncomingMessage,
  numbers: ReadonlyMap<string, string | undefined>,
): Record<string, unknown> {
  const start = url.indexOf('?')
  if (start === -1) return {}
  const fields: Record<string, unknown> = Object.fromEntries(new URLSearchParams(url.slice(start + 1)))
  for (const [name, problem] of numbers) {
    const value = fields[name]
    if (typeof value !== 'string') continue
    if (/^\d{1,15}$/.test(value)) fields[name] = Number(value)
    else if (problem !== undefined)
      throw new ServiceError('invalid_value', `${name}: ${problem}`, { param: name })
  }
  return fields
}

function rejectMediaType(mediaType: string, isDefinition: boolean): ServiceError {
  const accepted = ['application/json', ...(isDefinition ? Object.keys(definitionFormats) : [])]
  const sent =
    mediaType === '' ? 'The Content-Type header is missing' : `Content-Type: '${mediaType}' is not supported`
  return new ServiceError('unsupported_media_type', `${sent}; send ${accepted.join(', ')}.`)
}
