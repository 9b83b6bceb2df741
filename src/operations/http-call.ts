/** One request on its way through a door, and the ways every answer is written. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { z } from 'zod'
import {
  crossOriginHeaders,
  endAndLinger,
  endWith,
  isOpenToOrigins,
  isStillSending,
  noStore,
  preflightHeaders,
  securityHeaders,
} from '../http/response.ts'
import { withoutKeys } from '../lib/api-key.ts'
import { reasons, ServiceError } from '../lib/errors.ts'
import type { Dependencies } from './dependencies.ts'
import { type AnyCaller, type Arrival, CallContext } from './operation.ts'

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

export type ErrorShape = 'agent' | 'openai' | 'artifact'

/** The shape of a path's errors, also where no operation matched. Decision: 4. */
export function errorShapeOf(path: string): ErrorShape {
  if (isAboutArtifacts(path)) return 'artifact'
  return /^\/v1\/(manager\/)?agents(\/|$)/.test(path) ? 'agent' : 'openai'
}

/** Whether a path is one of uploads and artifacts, which have a protocol of their own outside `/v1`. Decision: 3 (Doors). */
export function isAboutArtifacts(path: string): boolean {
  return /^\/(artifacts|upload|capabilities)(\/|$)/.test(path)
}

/** The body a failure is told in. Contract: Errors. */
export function renderError(error: ServiceError, shape: ErrorShape): object {
  if (shape === 'artifact') return { ok: false, error: error.message }
  if (shape === 'agent') return { error: error.message, code: error.code }
  return {
    error: {
      message: error.message,
      type: reasons[error.reason].type,
      param: error.details.param ?? null,
      code: error.code,
    },
  }
}

/** The headers that belong to a failure, as a flat list. */
export function errorHeaders({ details, status }: ServiceError): string[] {
  const headers: string[] = []
  if (details.retryAfterSeconds !== undefined) headers.push('Retry-After', String(details.retryAfterSeconds))
  if (details.allow !== undefined) headers.push('Allow', details.allow.join(', '))
  if (status === 401) headers.push('WWW-Authenticate', 'Bearer')
  return headers
}

/** The first thing wrong with an input, as `path: what`; `param` is the path. */
export function toInvalidValue(error: z.ZodError): ServiceError {
  const issue = mostSpecific(error.issues)
  const param = renderPath(issue.path)
  const problem = problemOf(issue)
  const message = param === '' ? problem : `${param}: ${problem}`
  return new ServiceError('invalid_value', message, param === '' ? {} : { param })
}

/** zod's own words, shorter, and plain about what is missing altogether. */
function problemOf({ message }: Issue): string {
  if (message.endsWith(', received undefined')) return 'is required'
  return message.replace(/^Invalid input: /, '')
}

type Issue = z.core.$ZodIssue

/** In a union the branch that got furthest names the field a caller must mend. */
function mostSpecific(issues: readonly Issue[]): Issue {
  const first = issues[0] as Issue
  if (first.code !== 'invalid_union' || first.errors.length === 0) return first
  const branches = first.errors.map((branch) => mostSpecific(branch))
  const deepest = branches.reduce((best, issue) => (issue.path.length > best.path.length ? issue : best))
  if (deepest.path.length > 0) return { ...deepest, path: [...first.path, ...deepest.path] }
  // A value that is too long is of the kind that its branch takes.
  const tooLong = branches.find(isTooLong)
  return tooLong === undefined ? first : { ...tooLong, path: first.path }
}

function isTooLong(issue: Issue): boolean {
  return issue.code === 'too_big' && ['array', 'string'].includes(issue.origin)
}

/** `messages[2].tool_call_id` */
export function renderPath(path: readonly PropertyKey[]): string {
  return path
    .map((step, index) =>
      typeof step === 'number' ? `[${step}]` : index === 0 ? String(step) : `.${String(step)}`,
    )
    .join('')
}

/** What a line says of the call. */
export interface FailedCall {
  readonly requestId?: string | undefined
  readonly traceId?: string | undefined
  readonly path: string | undefined
}

/** Counts the failure, and writes it down. No line holds a key, wherever in the address a caller put it. Security: 2.13. */
export function logFailure(
  { log, metrics }: Pick<Dependencies, 'log' | 'metrics'>,
  { requestId, traceId, path }: FailedCall,
  failure: ServiceError,
): void {
  metrics.callFailed(failure.reason)
  const line = { requestId, traceId, path: withoutKeys(path ?? ''), reason: failure.reason }
  const text = failure.details.isQuoted ? 'refused in the words of a backend' : withoutKeys(failure.message)
  const causedBy = { ...line, err: failure.details.cause }
  if (failure.reason === 'internal_error') log.error(causedBy, 'request failed')
  else if (failure.status >= 500) log.warn(causedBy, text)
  else log.debug(line, text)
}
