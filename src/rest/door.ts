/** The REST door: finds the operation, admits the caller, gathers the input, runs it, writes the answer. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Deps } from '../deps.ts'
import { ServiceError, toServiceError } from '../errors.ts'
import type { Caller } from '../keys/schema.ts'
import { Download, EventStream, JsonBytes } from '../rpc/answer.ts'
import { authorize, countStray } from '../rpc/authorize.ts'
import { type Arrival, CallContext } from '../rpc/context.ts'
import { toInvalidValue } from '../rpc/invalid-value.ts'
import { logFailure } from '../rpc/log-failure.ts'
import type { Call } from '../rpc/op.ts'
import { writeDownload } from './download.ts'
import { errorHeaders, errorShapeOf, renderError } from './errors.ts'
import {
  askForBody,
  crossOriginHeaders,
  isOpenToOrigins,
  noStore,
  preflightHeaders,
  securityHeaders,
} from './headers.ts'
import { gatherInput } from './input.ts'
import { endAndLinger, isStillSending } from './linger.ts'
import { assertAcceptable, receiveUpload } from './multipart.ts'
import { createRouteTable, type Match, type RestOperation } from './routes.ts'
import { findSizeLimit } from './size-limit.ts'
import { DONE, eventStreamHeaders, writeEvents } from './sse.ts'
import { endWith } from './write.ts'

/** Longest request target that is looked at, in characters. Security: 2.5. */
const MAX_TARGET_LENGTH = 8_192

export interface RestDoor {
  /** Answers a request if it lies under `/v1`; false leaves it to somebody else. */
  answer(request: IncomingMessage, response: ServerResponse, arrival: Arrival): boolean
  /** Ends every answer under way: the service is going away. */
  endStreams(): void
}

/** The door in front of these operations. */
export function createRestDoor(deps: Deps, operations: readonly RestOperation[]): RestDoor {
  const routes = createRouteTable(operations)
  const underWay = new Set<AbortController>()

  async function findOperation({ request, path, context }: RestCall): Promise<Match> {
    try {
      return routes.match(request.method as string, path)
    } catch (failure) {
      await countStray(context)
      throw failure
    }
  }

  async function answer(call: RestCall): Promise<void> {
    const { request, context } = call
    if ((request.url as string).length > MAX_TARGET_LENGTH)
      throw new ServiceError('too_large', `The address is longer than ${MAX_TARGET_LENGTH} characters.`)
    if (request.method === 'OPTIONS' && isOpenToOrigins(call.path)) return call.writePreflight()
    const { operation, params } = await findOperation(call)
    call.errorShape = operation.wire.errors
    await authorize(context, operation.wire)
    if (operation.wire.body === 'upload') return answerUpload(call, operation)
    askForBody(request, call.response)
    return run(call, operation, await gatherInput(request, operation, params, deps))
  }

  /** The file lasts as long as the call, unless the operation keeps it. */
  async function answerUpload(call: RestCall, operation: RestOperation): Promise<void> {
    const { config, fileBlobs: blobs } = deps
    const { request, signal, context } = call
    const maxBytes = operation.wire.maxBodyBytes?.(config) ?? config.limits.maxFileBytes
    const limit = await findSizeLimit(deps, context.caller.tenantId, maxBytes)
    assertAcceptable(request, limit)
    askForBody(request, call.response)
    const options = { blobs, limit, idleMs: config.timings.bodyIdleMs, signal }
    await receiveUpload(request, options, (fields) => run(call, operation, fields))
  }

  async function run(call: RestCall, operation: RestOperation, input: unknown): Promise<void> {
    const parsed = operation.input.safeParse(input)
    if (!parsed.success) throw toInvalidValue(parsed.error)
    call.input = parsed.data
    const result = await operation.run(call)
    if (result instanceof EventStream) return call.writeStream(result)
    if (result instanceof Download) return call.writeDownload(result)
    call.writeAnswer(operation.wire.status ?? 200, result)
  }

  return {
    answer(request, response, arrival) {
      const path = (request.url ?? '/').split('?', 1)[0] as string
      if (path !== '/v1' && !path.startsWith('/v1/')) return false
      const call = new RestCall(deps, request, response, arrival, path, underWay)
      answer(call).catch((thrown) => call.writeFailure(toServiceError(thrown)))
      return true
    },
    endStreams() {
      const reason = new ServiceError('service_unavailable', 'The service is shutting down.')
      for (const controller of underWay) controller.abort(reason)
    },
  }
}

/** One request on its way through the door, and the ways to answer it; also the call its operation runs. */
class RestCall implements Call<Caller, unknown> {
  readonly request: IncomingMessage
  readonly context: CallContext
  readonly path: string
  input: unknown
  errorShape: 'agent' | 'openai'
  readonly response: ServerResponse
  private readonly deps: Deps
  private readonly startedAtMs: number
  private readonly underWay: Set<AbortController>
  private controller: AbortController | undefined

  constructor(
    deps: Deps,
    request: IncomingMessage,
    response: ServerResponse,
    arrival: Arrival,
    path: string,
    underWay: Set<AbortController>,
  ) {
    this.deps = deps
    this.request = request
    this.response = response
    this.path = path
    this.underWay = underWay
    this.errorShape = errorShapeOf(path)
    this.context = new CallContext(deps, arrival)
    this.startedAtMs = deps.clock.monotonic()
  }

  /** Aborted when the client leaves before its answer is complete; made when first asked for. */
  get signal(): AbortSignal {
    if (this.controller === undefined) {
      const controller = new AbortController()
      const { response, underWay } = this
      const leave = () => {
        underWay.delete(controller)
        if (!response.writableFinished)
          controller.abort(new ServiceError('invalid_value', 'The caller left.'))
      }
      underWay.add(controller)
      if (response.closed) leave()
      else response.once('close', leave)
      this.controller = controller
    }
    return this.controller.signal
  }

  writeHead(status: number, headers: readonly string[], security = securityHeaders): ServerResponse {
    const { context, request, path } = this
    const all = [...security, 'X-Request-Id', context.arrival.requestId, ...headers, ...context.headers]
    if (request.headers.origin !== undefined && isOpenToOrigins(path)) all.push(...crossOriginHeaders)
    // What is still on its way is not worth reading.
    if (isStillSending(request)) all.push('Connection', 'close')
    const elapsedMs = Math.round(this.deps.clock.monotonic() - this.startedAtMs)
    all.push('openai-processing-ms', String(elapsedMs))
    return this.response.writeHead(status, all)
  }

  /** Answered before anybody is authenticated: browsers send it without a key. */
  writePreflight(): void {
    this.writeHead(204, preflightHeaders(this.request)).end()
  }

  writeAnswer(status: number, result: unknown): void {
    const body = result instanceof JsonBytes ? result.pieces : [Buffer.from(JSON.stringify(result))]
    if (!this.response.destroyed) this.writeJson(status, body, [])
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

  writeFailure(failure: ServiceError): void {
    this.logged(failure)
    if (this.response.headersSent || this.response.destroyed) return void this.response.destroy()
    const body = Buffer.from(JSON.stringify(renderError(failure, this.errorShape)))
    this.writeJson(failure.status, [body], errorHeaders(failure))
  }

  private writeJson(status: number, body: readonly Uint8Array[], headers: readonly string[]): void {
    const isCutShort = isStillSending(this.request)
    const sizeBytes = body.reduce((total, piece) => total + piece.length, 0)
    this.writeHead(status, [...jsonHeaders, ...headers, 'Content-Length', String(sizeBytes)])
    if (isCutShort) endAndLinger(this.request, this.response, body)
    else endWith(this.response, body)
  }

  private logged(failure: ServiceError): ServiceError {
    logFailure(this.deps.log, { requestId: this.context.arrival.requestId, path: this.path }, failure)
    return failure
  }
}

/** Decision: 7 (After the first byte a failure). */
function renderErrorFrame(failure: ServiceError): Uint8Array {
  return Buffer.from(`data: ${JSON.stringify(renderError(failure, 'openai'))}\n\n`)
}

const jsonHeaders: readonly string[] = ['Content-Type', 'application/json', ...noStore]
