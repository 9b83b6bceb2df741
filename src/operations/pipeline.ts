/** Runs a request through the steps listed in `server/app.ts`. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { z } from 'zod'
import {
  crossOriginHeaders,
  discardBody,
  endAfterBody,
  endWith,
  isAboutArtifacts,
  isOpenToOrigins,
  isStillSending,
  noStore,
  preflightHeaders,
  securityHeaders,
} from '../http/response.ts'
import { ServiceError, toServiceError } from '../lib/errors.ts'
import type { Dependencies } from './dependencies.ts'
import { errorHeaders, errorShapeOf, logFailure, renderError, toInvalidValue } from './errors.ts'
import {
  type AnyCaller,
  type AuthPolicy,
  type Call,
  CallContext,
  type Operation,
  type RequestMetadata,
} from './operation.ts'

export type Step<D extends CallDeps = Dependencies> = (call: HttpCall<AnyCaller, D>) => Promise<void> | void

export interface Route<C extends AnyCaller = AnyCaller, D extends CallDeps = Dependencies> {
  /** The operation's name in metrics and traces. */
  readonly name?: string
  /** The path with parameter names instead of values, for traces. */
  readonly pattern?: string
  /** Undefined for a preflight, and for a tRPC batch because each of its procedures has its own policy. */
  readonly auth: AuthPolicy | undefined
  readonly schema?: z.ZodType
  readonly isPlainInput?: ((input: unknown) => boolean) | undefined
  /** Checks the request's headers and path before the caller is authenticated. */
  check?(call: HttpCall<C, D>): void
  parse?(call: HttpCall<C, D>): unknown
  run(call: HttpCall<C, D>): unknown
  /** Writes the result of `run`; does nothing if `run` has written the response itself. */
  write?(call: HttpCall<C, D>, result: unknown): Promise<void> | void
  /** Writes a failure; by default as JSON in the path's error format. */
  writeFailure?(call: HttpCall<C, D>, failure: ServiceError): void
}

export interface Endpoint<C extends AnyCaller = AnyCaller, D extends CallDeps = Dependencies> {
  /** Finds the request's route; returns undefined if the path belongs to another endpoint. */
  find(call: HttpCall<C, D>): Route<C, D> | Promise<never> | undefined
}

type CallDeps = Pick<Dependencies, 'clock' | 'log' | 'metrics'>

/** Runs the steps in order and writes a failed step's error as the response; never rejects. */
export async function runSteps<D extends CallDeps>(
  call: HttpCall<AnyCaller, D>,
  steps: readonly Step<D>[],
): Promise<void> {
  try {
    try {
      for (const step of steps) {
        const pending = step(call)
        if (pending !== undefined) await pending
      }
    } finally {
      if (call.cleanUp !== undefined) await call.cleanUp()
    }
  } catch (thrown) {
    const failure = toServiceError(thrown)
    const { route } = call
    if (route.writeFailure === undefined || call.response.headersSent) call.writeFailure(failure)
    else route.writeFailure(call, call.logged(failure))
  }
}

export function routeTo<D extends CallDeps>(endpoints: readonly Endpoint<AnyCaller, D>[]): Step<D> {
  return (call) => {
    for (const endpoint of endpoints) {
      const route = endpoint.find(call)
      if (route instanceof Promise) return route
      if (route === undefined) continue
      call.route = route
      const { name, pattern = '' } = route
      if (name !== undefined) call.context.metadata.instrumentation.found(name, pattern)
      return route.check?.(call)
    }
    throw new ServiceError('not_found', `Path not found: ${call.path}`)
  }
}

export function parseInput(call: HttpCall): Promise<void> | void {
  const { route } = call
  if (route.parse === undefined) return
  const input = route.parse(call)
  if (!(input instanceof Promise)) call.input = input
  else
    return input.then((parsed) => {
      call.input = parsed
    })
}

export function validateInput(call: HttpCall): void {
  const { schema, isPlainInput } = call.route
  if (schema === undefined || isPlainInput?.(call.input)) return
  call.input = validate(schema, call.input)
}

/** @throws ServiceError `invalid_value` with the first problem as `path: problem`; `param` is the path. */
export function validate(schema: z.ZodType, input: unknown): unknown {
  const parsed = schema.safeParse(input)
  if (parsed.success) return parsed.data
  throw toInvalidValue(parsed.error)
}

export function runRoute(call: HttpCall): Promise<void> | void {
  const result = call.route.run(call)
  if (!(result instanceof Promise)) call.result = result
  else
    return result.then((settled) => {
      call.result = settled
    })
}

/** Runs an operation with the database connections of its area; the area is the operation's tag. */
export function runOperation<D extends Dependencies>(
  operation: Operation<D>,
  call: Call<D, AnyCaller, unknown>,
): unknown {
  const { context } = call
  const deps = context.deps.inArea?.(operation.tag)
  if (deps === undefined) return operation.run(call)
  return operation.run({
    context: context.withDeps(deps as D),
    input: call.input,
    // Created on first use.
    get signal() {
      return call.signal
    },
    wantsEvents: call.wantsEvents,
  })
}

export function writeResult(call: HttpCall): Promise<void> | void {
  return call.route.write?.(call, call.result)
}

const unrouted: Route<AnyCaller, CallDeps> = { auth: undefined, run: () => undefined }

export class HttpCall<C extends AnyCaller = AnyCaller, D extends CallDeps = Dependencies> {
  readonly deps: D
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The path without its query. */
  readonly path: string
  readonly context: CallContext<C, D>
  route: Route<C, D> = unrouted
  /** The decoded path parameters. */
  params: Readonly<Record<string, string>> = {}
  input: unknown
  result: unknown
  /** Runs after the response, whether or not the call succeeded. */
  cleanUp: (() => Promise<void>) | undefined
  private readonly startedAtMs: number
  private controller: AbortController | undefined

  constructor(deps: D, request: IncomingMessage, response: ServerResponse, metadata: RequestMetadata) {
    this.deps = deps
    this.request = request
    this.response = response
    const { url = '/' } = request
    const end = url.indexOf('?')
    this.path = end === -1 ? url : url.slice(0, end)
    this.context = new CallContext<C, D>(deps, metadata)
    this.startedAtMs = deps.clock.monotonic()
  }

  get auth(): AuthPolicy | undefined {
    return this.route.auth
  }

  /**
   * Aborts when the client disconnects before the response is complete, or at shutdown. Created on first use.
   */
  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController()
      if (this.response.closed) this.close()
    }
    return this.controller.signal
  }

  /** Aborts the signal if it has been created. */
  abort(reason: ServiceError): void {
    this.controller?.abort(reason)
  }

  /** Aborts the signal unless the response is complete; call it when the response has closed. */
  close(): void {
    if (this.controller === undefined || this.response.writableFinished) return
    this.abort(new ServiceError('invalid_value', 'The client disconnected.'))
  }

  /** Whether the client accepts a stream of events; always false for HEAD, whose response has no body. */
  get wantsEvents(): boolean {
    const { method, headers } = this.request
    return method !== 'HEAD' && headers.accept?.includes('text/event-stream') === true
  }

  writeHead(status: number, headers: readonly string[], security = securityHeaders): ServerResponse {
    const { context, request, path } = this
    // `concat` is faster than spreading.
    const all = security.concat('X-Request-Id', context.metadata.requestId, headers, context.headers)
    if (request.headers.origin !== undefined && isOpenToOrigins(path)) all.push(...crossOriginHeaders)
    // Closes the connection instead of reading the rest of the request body.
    if (isStillSending(request)) all.push('Connection', 'close')
    if (path.startsWith('/v1/') || path === '/v1')
      all.push('openai-processing-ms', String(Math.round(this.deps.clock.monotonic() - this.startedAtMs)))
    else if (isAboutArtifacts(path)) all.push('Protocol-Version', '2')
    return this.response.writeHead(status, all)
  }

  writePreflight(headers: readonly string[] = []): void {
    this.writeHead(204, [...preflightHeaders(this.request), ...headers]).end()
  }

  writeEmpty(status: number, headers: readonly string[]): void {
    this.writeBody(status, [], [...headers, ...noStore])
  }

  writeJson(status: number, body: readonly Uint8Array[], headers: readonly string[] = []): void {
    this.writeBody(status, body, headers.length === 0 ? jsonHeaders : [...jsonHeaders, ...headers])
  }

  writeBody(
    status: number,
    body: readonly Uint8Array[],
    headers: readonly string[],
    security = securityHeaders,
  ): void {
    const { request, response } = this
    if (response.destroyed) return
    const isCutShort = isStillSending(request)
    const length = status === 204 ? [] : ['Content-Length', String(sizeOf(body))]
    this.writeHead(status, headers.concat(length), security)
    if (isCutShort) endAfterBody(request, response, body)
    else endWith(response, body)
  }

  writeFailure(failure: ServiceError): void {
    this.logged(failure)
    if (this.response.headersSent || this.response.destroyed) return void this.response.destroy()
    const body = Buffer.from(JSON.stringify(renderError(failure, errorShapeOf(this.path))))
    this.writeJson(failure.status, [body], errorHeaders(failure))
  }

  /**
   * Prepares a response that the caller writes itself. First discards a limited part of the remaining request
   * body; otherwise, Node would read all of it after the response.
   */
  async delegateResponse(): Promise<void> {
    const { request, response } = this
    response.setHeader('X-Request-Id', this.context.metadata.requestId)
    if (!isStillSending(request)) return
    await new Promise<void>((resolve) => discardBody(request, resolve, resolve))
    if (isStillSending(request)) response.setHeader('Connection', 'close')
  }

  logged(failure: ServiceError): ServiceError {
    logFailure(this.deps, { ...this.context.metadata.instrumentation.line, path: this.path }, failure)
    return failure
  }
}

function sizeOf(body: readonly Uint8Array[]): number {
  let bytes = 0
  for (const piece of body) bytes += piece.length
  return bytes
}

const jsonHeaders: readonly string[] = ['Content-Type', 'application/json', ...noStore]
