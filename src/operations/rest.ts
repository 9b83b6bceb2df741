/** The REST API: a route for each operation, how its input is read and how its result is written. */
import type { IncomingMessage } from 'node:http'
import type { z } from 'zod'
import { writeDownload } from '../http/download.ts'
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
import { countRequest, limitBodyBytes } from './access.ts'
import type { Dependencies } from './dependencies.ts'
import { errorHeaders, renderError } from './errors.ts'
import { type AnyCaller, Download, EventStream, JsonBytes, Page } from './operation.ts'
import { type Endpoint, type HttpCall, type Route, validate } from './pipeline.ts'
import { createRouteTable, type RestOperation } from './routes.ts'

export function createRestEndpoint<D extends Dependencies>(
  operations: readonly RestOperation<D>[],
): Endpoint<AnyCaller, D> {
  const table = createRouteTable(operations.map((operation) => ({ ...operation, route: toRoute(operation) })))

  return {
    find(call) {
      const { path, request } = call
      if (!/^\/(v1|artifacts|capabilities)(\/|$)/.test(path)) return undefined
      assertShortTarget(request)
      if (request.method === 'OPTIONS' && isOpenToOrigins(path)) return preflight
      try {
        const { operation, params } = table.match(request.method as string, path)
        call.params = params
        return operation.route
      } catch (failure) {
        return rejectUnmatched(call, failure)
      }
    },
  }
}

/** Browsers send a preflight without credentials. */
const preflight: Route = { auth: undefined, run: (call) => call.writePreflight() }

/** Counts the call against the limits of its key: it is still an authenticated request. */
async function rejectUnmatched({ context }: HttpCall, failure: unknown): Promise<never> {
  const caller = await context.deps.authenticator.find(context.metadata)
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
    ...(pathSchema && { check: ({ params }) => void validate(pathSchema, params) }),
    async parse(call) {
      if (upload !== undefined) return readForm(call, await upload(call.context))
      askForBody(call.request, call.response)
      return readInput(call)
    },
    run: (call) => operation.run(call),
    write(call, result) {
      if (result instanceof EventStream) return writeStream(call, result)
      if (result instanceof Download) return writeDownload(result.content, call)
      if (result instanceof Page) return writePage(call, 200, result)
      const body = result instanceof JsonBytes ? result.pieces : [Buffer.from(JSON.stringify(result))]
      call.writeJson(status, body)
    },
    ...(page && {
      writeFailure: (call, failure) => writePage(call, failure.status, page(failure), errorHeaders(failure)),
    }),
  }
}

/** Receives the file of a form; it is deleted with the end of the call unless the operation commits it. */
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

/** Reads the input from the query of a GET or DELETE, else from the body, which may not contain fields of the path or of headers. */
function createInputReader<D>(operation: RestOperation<D>): (call: HttpCall) => unknown {
  const { http, request: { headers = {}, ignoredFields = [] } = {} } = operation
  const headerFields = Object.entries(headers)
  if (http.method === 'GET' || http.method === 'DELETE') {
    const numbers = listNumericFields(operation.input)
    return ({ request, params }) => ({
      ...readQuery(request, numbers),
      ...readHeaderFields(request, headerFields),
      ...params,
    })
  }
  const fromHeaders = Object.values(headers)
  return async (call) => {
    const { request, params } = call
    const body = await readInputBody(call, operation)
    if (typeof body !== 'object' || body === null || Array.isArray(body)) return body
    const fields: Record<string, unknown> = body as Record<string, unknown>
    for (const field of ignoredFields) delete fields[field]
    for (const param of [...Object.keys(params), ...fromHeaders]) {
      if (Object.hasOwn(fields, param))
        throw new ServiceError('invalid_value', `${param}: is not a field of the body`, { param })
    }
    return Object.assign(fields, readHeaderFields(request, headerFields), params)
  }
}

async function readInputBody<D>(
  { request, context, deps: { config, clock } }: HttpCall,
  { auth, request: options }: RestOperation<D>,
): Promise<unknown> {
  const mediaType = mediaTypeOf(request)
  const format = options?.body === 'definition' ? definitionFormats[mediaType] : undefined
  if (format === undefined && mediaType !== 'application/json') {
    if (mediaType === '' && hasNoBody(request)) return {}
    throw rejectMediaType(mediaType, options?.body === 'definition')
  }
  const caller = auth.callers.length === 0 ? undefined : context.caller
  const bytes = await readBody(
    request,
    {
      maxBytes: limitBodyBytes(config, caller, options?.maxBodyBytes?.(config) ?? MAX_JSON_BYTES),
      totalMs: config.timings.bodyMs,
      idleMs: config.timings.bodyIdleMs,
    },
    clock,
  )
  if (format !== undefined) return { yaml: decodeUtf8(bytes), format }
  return bytes.length === 0 ? {} : parseJson(bytes, options?.maxJsonValues)
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

function listNumericFields(input: z.ZodType): string[] {
  const { shape } = input as z.ZodObject
  return Object.keys(shape).filter((name) => (shape[name] as z.ZodType).safeParse(1).success)
}

/** Query values are strings; those of numeric fields become numbers where they are digits only. */
function readQuery({ url = '' }: IncomingMessage, numbers: readonly string[]): Record<string, unknown> {
  const start = url.indexOf('?')
  if (start === -1) return {}
  const fields: Record<string, unknown> = Object.fromEntries(new URLSearchParams(url.slice(start + 1)))
  for (const name of numbers) {
    const value = fields[name]
    if (typeof value === 'string' && /^\d{1,15}$/.test(value)) fields[name] = Number(value)
  }
  return fields
}

function rejectMediaType(mediaType: string, isDefinition: boolean): ServiceError {
  const accepted = ['application/json', ...(isDefinition ? Object.keys(definitionFormats) : [])]
  const sent =
    mediaType === ''
      ? 'The Content-Type header is missing'
      : `Content-Type '${mediaType}' is not accepted here`
  return new ServiceError('unsupported_media_type', `${sent}; send ${accepted.join(', ')}.`)
}
