/** Defines the tracing interface, which is implemented only if tracing is on (ADR 0032). */
import type { IncomingHttpHeaders } from 'node:http'

/** Must not contain conversation content, keys or file names. */
export type SpanAttributes = Readonly<
  Record<string, string | number | boolean | readonly string[] | undefined>
>

export type SpanKind = 'server' | 'client' | 'internal'

export interface TraceSpan {
  /** Id of the trace, which contains all spans of a request, including those in other services. */
  readonly traceId: string
  /** `traceparent` and `tracestate` headers, which let another service add its spans to this trace. */
  readonly headers: Readonly<Record<string, string>>
  begin(name: string, kind: SpanKind, attributes: SpanAttributes): TraceSpan
  rename(name: string): void
  set(attributes: SpanAttributes): void
  /** Marks the span as failed; `reason` must come from a fixed set. */
  fail(reason: string): void
  /** Later calls have no effect. */
  end(): void
}

export interface Tracing {
  /** Starts a request's span, as a child of the client's span if the headers contain one. */
  beginRequest(headers: IncomingHttpHeaders, name: string, attributes: SpanAttributes): TraceSpan
  /** Remembers the last request that sent bytes of an upload. */
  linkUpload(blob: string, request: TraceSpan): void
  /**
   * Starts a separate trace for an upload's job, linked to the upload's last request if this process received
   * it.
   */
  beginJob(blob: string, name: string, attributes: SpanAttributes): TraceSpan
  /** Sends the remaining spans; waits at most two seconds. */
  close(): Promise<void>
}
