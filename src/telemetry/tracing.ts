/** Defines the tracing interface, which is implemented only when tracing is on (ADR 0032). */
import type { IncomingHttpHeaders } from 'node:http'

/** Must not contain the content of conversations, keys or file names. */
export type SpanAttributes = Readonly<
  Record<string, string | number | boolean | readonly string[] | undefined>
>

export type SpanKind = 'server' | 'client' | 'internal'

export interface TraceSpan {
  /** The same for all spans of one request, also in other services. */
  readonly traceId: string
  /** `traceparent` and `tracestate`, which make the work of another service a part of this trace. */
  readonly headers: Readonly<Record<string, string>>
  begin(name: string, kind: SpanKind, attributes: SpanAttributes): TraceSpan
  rename(name: string): void
  set(attributes: SpanAttributes): void
  /** Marks the span as failed; `reason` must come from a fixed set. */
  fail(reason: string): void
  /** Only the first call counts. */
  end(): void
}

export interface Tracing {
  /** Begins the span of a request, as a child of the client's span if the headers contain one. */
  beginRequest(headers: IncomingHttpHeaders, name: string, attributes: SpanAttributes): TraceSpan
  /** Remembers the last request that sent bytes of an upload. */
  linkUpload(blob: string, request: TraceSpan): void
  /** Begins a separate trace for the job of an upload, with a link to the last request of the upload if this process received it. */
  beginJob(blob: string, name: string, attributes: SpanAttributes): TraceSpan
  /** Sends the remaining spans, for at most two seconds. */
  close(): Promise<void>
}
