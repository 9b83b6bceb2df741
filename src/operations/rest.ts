/** The REST door: finds the operation, admits the caller, gathers the input, runs it, writes the answer. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { z } from 'zod'
import { writeDownload } from '../http/download.ts'
import { assertAcceptable, receiveUpload } from '../http/multipart.ts'
import { askForBody, decodeUtf8, hasNoBody, mediaTypeOf, parseJson, readBody } from '../http/request.ts'
import { isOpenToOrigins, pageHeaders, pageSecurityHeaders } from '../http/response.ts'
import { DONE, eventStreamHeaders, writeEvents } from '../http/sse.ts'
import { ServiceError, toServiceError } from '../lib/errors.ts'
import { authorize, countStray } from './authorize.ts'
import type { Dependencies } from './dependencies.ts'
import { CallsUnderWay, errorHeaders, HttpCall, renderError, toInvalidValue } from './http-call.ts'
import { largestBodyOf } from './largest-body.ts'
import type { AnyCaller } from './operation.ts'
import { type Arrival, type Call, type Caller, Download, EventStream, JsonBytes, Page } from './operation.ts'
import { createRouteTable, type Match, type RestOperation } from './routes.ts'

/** A way in for requests of some paths. */
export interface Door {
  /** Answers a request if its path is one of these; false leaves it to somebody else. */
  answer(request: IncomingMessage, response: ServerResponse, arrival: Arrival): boolean
  /** Ends every answer under way: the service is going away. */
  endStreams(): void
}

/** The door in front of these operations. */
export function createRestDoor<D extends Dependencies>(
  deps: D,
  operations: readonly RestOperation<D>[],
): Door {
  const routes = createRouteTable(operations)
  const underWay = new CallsUnderWay()

  async function findOperation({ request, path, context }: RestCall<D>): Promise<Match<D>> {
    try {
      return routes.match(request.method as string, path)
    } catch (failure) {
      await countStray(context)
      throw failure
    }
  }

  async function answer(call: RestCall<D>): Promise<void> {
    const { request, context } = call
    call.assertShortTarget()
    if (request.method === 'OPTIONS' && isOpenToOrigins(call.path)) return call.writePreflight()
    const { operation, params } = await findOperation(call)
    context.arrival.watch.found(operation.name, operation.http.path)
    call.errorShape = operation.wire.errors
    call.failurePage = operation.wire.page
    if (operation.wire.pathFirst !== undefined) parseInput(operation.wire.pathFirst, params)
    await authorize(context, operation.wire)
    if (operation.wire.body === 'upload') return answerUpload(call, operation)
    askForBody(request, call.response)
    const caller = operation.wire.callers.length === 0 ? undefined : context.caller
    return run(call, operation, await gatherInput(request, operation, params, deps, caller))
  }

  /** The file lasts as long as the call, unless the operation keeps it. */
  async function answerUpload(call: RestCall<D>, operation: RestOperation<D>): Promise<void> {
    const { request, signal, context } = call
    if (operation.upload === undefined) throw new Error(`${operation.id} does not say where its uploads go`)
    const { files, limit } = await operation.upload(context)
    assertAcceptable(request, limit)
    askForBody(request, call.response)
    const options = { files, limit, idleMs: deps.config.timings.bodyIdleMs, signal }
    await receiveUpload(request, options, (fields) => run(call, operation, fields))
  }

  async function run(call: RestCall<D>, operation: RestOperation<D>, input: unknown): Promise<void> {
    call.input = parseInput(operation.input, input)
    const result = await operation.run(call)
    if (result instanceof EventStream) return call.writeStream(result)
    if (result instanceof Download) return call.writeDownload(result)
    if (result instanceof Page) return call.writePage(200, result)
    call.writeAnswer(operation.wire.status ?? 200, result)
  }

  return {
    answer(request, response, arrival) {
      const path = (request.url ?? '/').split('?', 1)[0] as string
      if (!/^\/(v1|artifacts|capabilities)(\/|$)/.test(path)) return false
      const call = new RestCall(deps, request, response, arrival, path, underWay)
      answer(call).catch((thrown) => call.writeFailure(toServiceError(thrown)))
      return true
    },
    endStreams: () => underWay.endAll(),
  }
}

/** @throws ServiceError `invalid_value` */
function parseInput(schema: z.ZodType, input: unknown): unknown {
  const parsed = schema.safeParse(input)
  if (parsed.success) return parsed.data
  throw toInvalidValue(parsed.error)
}

/** The call that an operation runs, and the ways to write what comes of it. */
class RestCall<D extends Dependencies> extends HttpCall<Caller, D> implements Call<D, Caller, unknown> {
  input: unknown
  /** How a failure is told where a page was asked for. */
  failurePage: ((failure: ServiceError) => Page) | undefined

  get wantsEvents(): boolean {
    const { method, headers } = this.request
    // Of a stream that never ends there would be nothing to send but its head.
    return method !== 'HEAD' && headers.accept?.includes('text/event-stream') === true
  }

  writeAnswer(status: number, result: unknown): void {
    const body = result instanceof JsonBytes ? result.pieces : [Buffer.from(JSON.stringify(result))]
    if (!this.response.destroyed) this.writeJson(status, body)
  }

  writePage(status: number, { html }: Page, headers: readonly string[] = []): void {
    if (this.response.destroyed) return
    this.writeBody(status, [Buffer.from(html)], [...pageHeaders, ...headers], pageSecurityHeaders)
  }

  override writeFailure(failure: ServiceError): void {
    const { failurePage, response } = this
    if (failurePage === undefined || response.headersSent) super.writeFailure(failure)
    else this.writePage(failure.status, failurePage(this.logged(failure)), errorHeaders(failure))
  }

  async writeStream({ events, tellFailure }: EventStream): Promise<void> {
    await writeEvents(this.response, {
      events,
      writeHead: () => this.writeHead(200, eventStreamHeaders),
      end: tellFailure === undefined ? DONE : '',
      renderFailure: (thrown) => (tellFailure ?? renderErrorFrame)(this.logged(toServiceError(thrown))),
      heartbeatMs: this.deps.config.timings.heartbeatMs,
    })
  }

  writeDownload({ content }: Download): Promise<void> {
    const { request, response, context, signal } = this
    const writeHead = (status: number, headers: readonly string[], security: readonly string[]) =>
      void this.writeHead(status, headers, security)
    return writeDownload(content, { request, response, context, signal, writeHead })
  }
}

/** Decision: 7 (After the first byte a failure). */
function renderErrorFrame(failure: ServiceError): Uint8Array {
  return Buffer.from(`data: ${JSON.stringify(renderError(failure, 'openai'))}\n\n`)
}

/** The most a JSON body may hold unless the operation says otherwise. Decision: 2. */
const MAX_JSON_BYTES = 1024 * 1024

/** The raw media types of an agent definition, and the format each is in. Decision: 6. */
export const definitionFormats: Readonly<Record<string, 'yaml' | 'markdown'>> = {
  'application/yaml': 'yaml',
  'text/yaml': 'yaml',
  'application/x-yaml': 'yaml',
  'text/markdown': 'markdown',
}

/**
 * The operation's input before validation. A body may not hold what belongs into the path or a header.
 * @throws ServiceError for a body that is too large, too slow, of another media type, or not what its type says.
 */
export async function gatherInput(
  request: IncomingMessage,
  operation: RestOperation,
  params: Readonly<Record<string, string>>,
  deps: Pick<Dependencies, 'config' | 'clock'>,
  caller: AnyCaller | undefined,
): Promise<unknown> {
  const { http, wire } = operation
  const fields: Record<string, unknown> = { ...headerFields(request, wire.headers), ...params }
  if (http.method === 'GET' || http.method === 'DELETE') {
    return { ...queryFields(request, wire.integers), ...fields }
  }
  const body = await readInputBody(request, operation, deps, caller)
  if (!isRecord(body)) return body
  for (const field of wire.ignoredFields ?? []) delete body[field]
  for (const param of [...Object.keys(params), ...Object.values(wire.headers ?? {})]) {
    if (Object.hasOwn(body, param))
      throw new ServiceError('invalid_value', `${param}: is not a field of the body`, { param })
  }
  return Object.assign(body, fields)
}

async function readInputBody(
  request: IncomingMessage,
  operation: RestOperation,
  { config, clock }: Pick<Dependencies, 'config' | 'clock'>,
  caller: AnyCaller | undefined,
): Promise<unknown> {
  const mediaType = mediaTypeOf(request)
  const format = operation.wire.body === 'definition' ? definitionFormats[mediaType] : undefined
  if (format === undefined && mediaType !== 'application/json') {
    if (mediaType === '' && hasNoBody(request)) return {}
    throw unsupportedMediaType(mediaType, operation)
  }
  const bytes = await readBody(
    request,
    {
      maxBytes: largestBodyOf(config, caller, operation.wire.maxBodyBytes?.(config) ?? MAX_JSON_BYTES),
      totalMs: config.timings.bodyMs,
      idleMs: config.timings.bodyIdleMs,
    },
    clock,
  )
  if (format !== undefined) return { yaml: decodeUtf8(bytes), format }
  return bytes.length === 0 ? {} : parseJson(bytes, operation.wire.maxJsonValues)
}

function isRecord(body: unknown): body is Record<string, unknown> {
  return typeof body === 'object' && body !== null && !Array.isArray(body)
}

function headerFields(
  request: IncomingMessage,
  names: Readonly<Record<string, string>> = {},
): Record<string, unknown> {
  const fields: Record<string, unknown> = {}
  for (const [header, field] of Object.entries(names)) {
    if (request.headers[header] !== undefined) fields[field] = request.headers[header]
  }
  return fields
}

/** Query values are strings; those of whole-number parameters become numbers where they are ones. */
function queryFields(request: IncomingMessage, integers: readonly string[] = []): Record<string, unknown> {
  const [, ...query] = (request.url ?? '').split('?')
  if (query.length === 0) return {}
  const fields: Record<string, unknown> = Object.fromEntries(new URLSearchParams(query.join('?')))
  for (const name of integers) {
    const value = fields[name]
    if (typeof value === 'string' && /^\d{1,15}$/.test(value)) fields[name] = Number(value)
  }
  return fields
}

function unsupportedMediaType(mediaType: string, { wire }: RestOperation): ServiceError {
  const accepted = ['application/json', ...(wire.body === 'definition' ? Object.keys(definitionFormats) : [])]
  const sent =
    mediaType === ''
      ? 'The Content-Type header is missing'
      : `Content-Type '${mediaType}' is not accepted here`
  return new ServiceError('unsupported_media_type', `${sent}; send ${accepted.join(', ')}.`)
}
