/** One request on its way through a door, and the ways every answer is written. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { ServiceError } from '../errors.ts'
import type { AnyCaller } from '../keys/schema.ts'
import { type Arrival, CallContext } from '../rpc/context.ts'
import { logFailure } from '../rpc/log-failure.ts'
import type { Dependencies } from './dependencies.ts'
import { type ErrorShape, errorHeaders, errorShapeOf, isAboutArtifacts, renderError } from './errors.ts'
import { crossOriginHeaders, isOpenToOrigins, noStore, preflightHeaders, securityHeaders } from './headers.ts'
import { endAndLinger, isStillSending } from './linger.ts'
import { endWith } from './write.ts'

/** Longest request target that is looked at, in characters. Security: 2.5. */
const MAX_TARGET_LENGTH = 8_192

/** The calls that somebody waits for the end of. */
export class CallsUnderWay {
  private readonly controllers = new Set<AbortController>()

  add(controller: AbortController): void {
    this.controllers.add(controller)
  }

  delete(controller: AbortController): void {
    this.controllers.delete(controller)
  }

  /** Ends every one of them: the service is going away. */
  endAll(): void {
    const reason = new ServiceError('service_unavailable', 'The service is shutting down.')
    for (const controller of this.controllers) controller.abort(reason)
  }
}

export class HttpCall<C extends AnyCaller, D extends Pick<Dependencies, 'clock' | 'log' | 'metrics'>> {
  readonly deps: D
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Without the query. */
  readonly path: string
  readonly context: CallContext<C, D>
  errorShape: ErrorShape
  private readonly startedAtMs: number
  private readonly underWay: CallsUnderWay
  private controller: AbortController | undefined

  constructor(
    deps: D,
    request: IncomingMessage,
    response: ServerResponse,
    arrival: Arrival,
    path: string,
    underWay: CallsUnderWay,
  ) {
    this.deps = deps
    this.request = request
    this.response = response
    this.path = path
    this.underWay = underWay
    this.errorShape = errorShapeOf(path)
    this.context = new CallContext<C, D>(deps, arrival)
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

  /** @throws ServiceError `too_large` */
  assertShortTarget(): void {
    if ((this.request.url as string).length > MAX_TARGET_LENGTH)
      throw new ServiceError('too_large', `The address is longer than ${MAX_TARGET_LENGTH} characters.`)
  }

  writeHead(status: number, headers: readonly string[], security = securityHeaders): ServerResponse {
    const { context, request, path } = this
    const all = [...security, 'X-Request-Id', context.arrival.requestId, ...headers, ...context.headers]
    if (request.headers.origin !== undefined && isOpenToOrigins(path)) all.push(...crossOriginHeaders)
    // What is still on its way is not worth reading.
    if (isStillSending(request)) all.push('Connection', 'close')
    if (isAboutArtifacts(path)) all.push('Protocol-Version', '2')
    else all.push('openai-processing-ms', String(Math.round(this.deps.clock.monotonic() - this.startedAtMs)))
    return this.response.writeHead(status, all)
  }

  /** Answered before anybody is authenticated: browsers send it without a key. */
  writePreflight(headers: readonly string[] = []): void {
    this.writeHead(204, [...preflightHeaders(this.request), ...headers]).end()
  }

  /** An answer that is told by its status and headers alone. */
  writeEmpty(status: number, headers: readonly string[]): void {
    if (this.response.destroyed) return
    const isCutShort = isStillSending(this.request)
    this.writeHead(status, [...headers, ...noStore, ...(status === 204 ? [] : ['Content-Length', '0'])])
    if (isCutShort) endAndLinger(this.request, this.response, [])
    else this.response.end()
  }

  writeJson(status: number, body: readonly Uint8Array[], headers: readonly string[] = []): void {
    this.writeBody(status, body, [...jsonHeaders, ...headers])
  }

  writeBody(
    status: number,
    body: readonly Uint8Array[],
    headers: readonly string[],
    security = securityHeaders,
  ): void {
    const isCutShort = isStillSending(this.request)
    const sizeBytes = body.reduce((total, piece) => total + piece.length, 0)
    this.writeHead(status, [...headers, 'Content-Length', String(sizeBytes)], security)
    if (isCutShort) endAndLinger(this.request, this.response, body)
    else endWith(this.response, body)
  }

  writeFailure(failure: ServiceError): void {
    this.logged(failure)
    if (this.response.headersSent || this.response.destroyed) return void this.response.destroy()
    const body = Buffer.from(JSON.stringify(renderError(failure, this.errorShape)))
    this.writeJson(failure.status, [body], errorHeaders(failure))
  }

  logged(failure: ServiceError): ServiceError {
    logFailure(this.deps, { ...this.context.arrival.watch.line, path: this.path }, failure)
    return failure
  }
}

const jsonHeaders: readonly string[] = ['Content-Type', 'application/json', ...noStore]
