/** Measures and traces a request from its headers to the end of its response. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Dependencies } from './dependencies.ts'
import { OTHER } from './metrics.ts'
import type { TraceSpan } from './tracing.ts'

export class RequestInstrumentation {
  readonly requestId: string
  /** Undefined if tracing is off. */
  readonly span: TraceSpan | undefined
  /** Set after authentication. */
  caller: { readonly tenantId: string; readonly agentId?: string } | undefined
  private readonly deps: Dependencies
  private readonly request: IncomingMessage
  private readonly response: ServerResponse
  private readonly startedMs: number
  private operation = OTHER

  constructor(deps: Dependencies, request: IncomingMessage, response: ServerResponse, requestId: string) {
    this.deps = deps
    this.request = request
    this.response = response
    this.requestId = requestId
    this.startedMs = deps.clock.monotonic()
    const { method = '' } = request
    this.span = deps.tracing?.beginRequest(request.headers, method, {
      'http.request.method': method,
      'parley.request.id': requestId,
    })
  }

  get line(): { readonly requestId: string; readonly traceId: string | undefined } {
    return { requestId: this.requestId, traceId: this.span?.traceId }
  }

  /** Sets the operation's name, and its path with parameter names instead of values. */
  found(operation: string, route: string): void {
    this.operation = operation
    this.span?.rename(`${this.request.method} ${route}`)
    this.span?.set({ 'http.route': route, 'parley.operation': operation })
  }

  /** Records the request; call it once, when the response has closed. */
  end(): void {
    const { deps, request, response, span, operation, caller } = this
    const { method = '' } = request
    const { tenantId, agentId } = caller ?? {}
    // Undefined if the client disconnected before the response began.
    const status = response.headersSent ? response.statusCode : undefined
    const durationMs = deps.clock.monotonic() - this.startedMs
    deps.metrics.requestEnded(operation, method, status, durationMs)
    span?.set({
      'http.response.status_code': status,
      'parley.tenant.id': tenantId,
      'parley.agent.id': agentId,
    })
    if (status === undefined || status >= 500) span?.fail(status === undefined ? 'left' : String(status))
    span?.end()
    if (!deps.log.isLevelEnabled('debug')) return
    const fields = { operation, method, status, durationMs: Math.round(durationMs), tenantId, agentId }
    deps.log.debug({ ...this.line, ...fields }, 'request')
  }
}
