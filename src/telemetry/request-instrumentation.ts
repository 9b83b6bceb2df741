/** Follows one request from its head to the end of its answer: how long it took, and one line for whoever debugs. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Dependencies } from './dependencies.ts'
import type { RequestMeter } from './metrics.ts'
import type { TraceSpan } from './tracing.ts'

type WatchDeps = Pick<Dependencies, 'metrics' | 'clock' | 'log' | 'tracing'>

/** What a line says of a caller. */
interface KnownCaller {
  readonly tenantId: string
  readonly agentId?: string
}

/** What becomes known of a request on its way. */
export class RequestWatch {
  readonly requestId: string
  /** Undefined where nobody traces. */
  readonly span: TraceSpan | undefined
  /** Set once it is known who is calling. */
  caller: KnownCaller | undefined
  private readonly deps: WatchDeps
  private readonly request: IncomingMessage
  private readonly response: ServerResponse
  private readonly startedMs: number
  private meter: RequestMeter

  constructor(deps: WatchDeps, request: IncomingMessage, response: ServerResponse, requestId: string) {
    this.deps = deps
    this.request = request
    this.response = response
    this.requestId = requestId
    this.startedMs = deps.clock.monotonic()
    this.meter = deps.metrics.requests.other
    const { method = '' } = request
    this.span = deps.tracing?.beginRequest(request.headers, method, {
      'http.request.method': method,
      'parley.request.id': requestId,
    })
    response.on('close', () => this.end())
  }

  /** What every line about the request says. */
  get line(): { readonly requestId: string; readonly traceId: string | undefined } {
    return { requestId: this.requestId, traceId: this.span?.traceId }
  }

  /** It asks for that operation, as the table of operations calls it; `route` is its path, with names for what varies. */
  found(operation: string, route: string): void {
    this.meter = this.deps.metrics.requests.of(operation)
    if (this.span === undefined) return
    this.span.rename(`${this.request.method} ${route}`)
    this.span.set({ 'http.route': route, 'parley.operation': operation })
  }

  private end(): void {
    const { deps, response, startedMs, meter } = this
    const { method = '' } = this.request
    // Whoever left before there was an answer has been told nothing.
    const status = response.headersSent ? response.statusCode : undefined
    const durationMs = deps.clock.monotonic() - startedMs
    meter.ended(method, status, durationMs)
    if (this.span !== undefined) this.endSpan(this.span, status)
    if (deps.log.isLevelEnabled('debug')) this.write(method, status, durationMs)
  }

  private endSpan(span: TraceSpan, status: number | undefined): void {
    const { tenantId, agentId } = this.describeCaller()
    span.set({
      'http.response.status_code': status,
      'parley.tenant.id': tenantId,
      'parley.agent.id': agentId,
    })
    if (status === undefined || status >= 500) span.fail(status === undefined ? 'left' : String(status))
    span.end()
  }

  private write(method: string, status: number | undefined, durationMs: number): void {
    const what = { operation: this.meter.name, method, status, durationMs: Math.round(durationMs) }
    this.deps.log.debug({ ...this.line, ...what, ...this.describeCaller() }, 'request')
  }

  private describeCaller(): { readonly tenantId: string | undefined; readonly agentId: string | undefined } {
    const { caller } = this
    return { tenantId: caller?.tenantId, agentId: caller?.agentId }
  }
}
