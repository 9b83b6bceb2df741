/** What traces are made of, whatever writes them: nothing is loaded, and nothing costs, where nobody traces. ADR 0032. */
import type { IncomingHttpHeaders } from 'node:http'

/** What a span says of itself: never what anybody wrote, no key, no name of a file. */
export type SpanAttributes = Readonly<
  Record<string, string | number | boolean | readonly string[] | undefined>
>

/** On which side of a call a span is. */
export type SpanKind = 'server' | 'client' | 'internal'

/** One step of what a request or a job does. */
export interface TraceSpan {
  /** The same for all steps of one request, at whoever else takes part in it. */
  readonly traceId: string
  /** What tells another service that its work belongs here: `traceparent` and `tracestate`. */
  readonly headers: Readonly<Record<string, string>>
  /** A step within this one. */
  begin(name: string, kind: SpanKind, attributes: SpanAttributes): TraceSpan
  rename(name: string): void
  set(attributes: SpanAttributes): void
  /** It came to nothing; `reason` is one of a few words. */
  fail(reason: string): void
  /** Only the first time counts. */
  end(): void
}

/** Writes traces. */
export interface Tracing {
  /** Begins a request, as a part of what its caller traces where the headers say so. */
  beginRequest(headers: IncomingHttpHeaders, name: string, attributes: SpanAttributes): TraceSpan
  /** Remembers for a while which request has last brought bytes of an upload. */
  linkUpload(blob: string, request: TraceSpan): void
  /** Begins a trace of its own for a job of an upload, with a link to the request that brought its last bytes, where that was here. */
  beginJob(blob: string, name: string, attributes: SpanAttributes): TraceSpan
  /** Sends what there is to send, for two seconds at most. */
  close(): Promise<void>
}
