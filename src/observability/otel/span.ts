/** A span of OpenTelemetry, handed on by hand: no context is kept per asynchronous call. */
import {
  type Context,
  defaultTextMapSetter,
  SpanKind as Kind,
  type Span,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import type { SpanAttributes, SpanKind, TraceSpan } from '../tracing.ts'

export const propagator = new W3CTraceContextPropagator()

export const kinds = { server: Kind.SERVER, client: Kind.CLIENT, internal: Kind.INTERNAL }

/** One of the library's spans. */
export class OtelSpan implements TraceSpan {
  readonly span: Span
  private readonly tracer: Tracer
  private readonly context: Context

  constructor(tracer: Tracer, span: Span, parent: Context) {
    this.tracer = tracer
    this.span = span
    this.context = trace.setSpan(parent, span)
  }

  get traceId(): string {
    return this.span.spanContext().traceId
  }

  get headers(): Readonly<Record<string, string>> {
    const headers: Record<string, string> = {}
    propagator.inject(this.context, headers, defaultTextMapSetter)
    return headers
  }

  begin(name: string, kind: SpanKind, attributes: SpanAttributes): OtelSpan {
    const span = this.tracer.startSpan(name, { kind: kinds[kind] }, this.context)
    const begun = new OtelSpan(this.tracer, span, this.context)
    begun.set(attributes)
    return begun
  }

  rename(name: string): void {
    this.span.updateName(name)
  }

  set(attributes: SpanAttributes): void {
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== undefined) this.span.setAttribute(name, Array.isArray(value) ? [...value] : value)
    }
  }

  fail(reason: string): void {
    this.span.setAttribute('error.type', reason)
    this.span.setStatus({ code: SpanStatusCode.ERROR })
  }

  end(): void {
    if (this.span.isRecording()) this.span.end()
  }
}
