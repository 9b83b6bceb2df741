/** Implements tracing with OpenTelemetry; loaded only if an OTLP endpoint is configured. */
import type { IncomingHttpHeaders } from 'node:http'
import {
  type Context,
  defaultTextMapGetter,
  defaultTextMapSetter,
  SpanKind as Kind,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { type ExportResult, ExportResultCode, W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { TracingConfig } from '../config/config.ts'
import { within } from '../lib/timeout.ts'
import type { SpanAttributes, SpanKind, TraceSpan, Tracing } from './tracing.ts'

const LAST_BATCH_TIMEOUT_MS = 2_000
const SEND_EVERY_MS = 2_000
/** Timeout for one batch, including all attempts. */
const EXPORT_TIMEOUT_MS = 3_000
/** Maximum number of spans waiting to be sent; further spans are dropped. */
const MOST_WAITING = 2_048
/** Limits how many uploads' last requests are remembered, so that jobs can link to them. */
const MOST_UPLOADS = 1_000

const propagator = new W3CTraceContextPropagator()
const kinds = { server: Kind.SERVER, client: Kind.CLIENT, internal: Kind.INTERNAL }

/** Starts tracing. Does not fail if the collector is unavailable. */
export function openTracing(
  config: TracingConfig,
  { version, log }: { readonly version: string; readonly log: Pick<Logger, 'warn' | 'info'> },
): Tracing {
  const processor = new BatchSpanProcessor({
    exporter: new LoggingExporter(config, log),
    maxQueueSize: MOST_WAITING,
    scheduledDelayMillis: SEND_EVERY_MS,
    exportTimeoutMillis: 2 * EXPORT_TIMEOUT_MS,
  })
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': config.serviceName, 'service.version': version }),
    sampler: toSampler(config.sampler),
    spanProcessors: [processor],
  })
  return new OtelTracing(provider, provider.getTracer('parley', version))
}

class OtelTracing implements Tracing {
  private readonly provider: TracerProvider
  private readonly tracer: Tracer
  private readonly uploads = new LRUCache<string, SpanContext>({ max: MOST_UPLOADS })

  constructor(provider: TracerProvider, tracer: Tracer) {
    this.provider = provider
    this.tracer = tracer
  }

  beginRequest(headers: IncomingHttpHeaders, name: string, attributes: SpanAttributes): OtelSpan {
    const caller = propagator.extract(ROOT_CONTEXT, headers, defaultTextMapGetter)
    return beginSpan(this.tracer, caller, name, 'server', attributes)
  }

  linkUpload(blob: string, request: OtelSpan): void {
    this.uploads.set(blob, request.span.spanContext())
  }

  beginJob(blob: string, name: string, attributes: SpanAttributes): OtelSpan {
    return beginSpan(this.tracer, ROOT_CONTEXT, name, 'internal', attributes, this.uploads.get(blob))
  }

  async close(): Promise<void> {
    await within(LAST_BATCH_TIMEOUT_MS, this.provider.shutdown()).catch(() => {})
  }
}

function beginSpan(
  tracer: Tracer,
  parent: Context,
  name: string,
  kind: SpanKind,
  attributes: SpanAttributes,
  link?: SpanContext,
): OtelSpan {
  const links = link === undefined ? [] : [{ context: link }]
  const begun = new OtelSpan(tracer, tracer.startSpan(name, { kind: kinds[kind], links }, parent), parent)
  begun.set(attributes)
  return begun
}

function toSampler({ followsCaller, share }: TracingConfig['sampler']): Sampler {
  const root = samplerOf(share)
  return followsCaller ? new ParentBasedSampler({ root }) : root
}

function samplerOf(share: number): Sampler {
  if (share === 0) return new AlwaysOffSampler()
  return share === 1 ? new AlwaysOnSampler() : new TraceIdRatioBasedSampler(share)
}

/** Logs only when the collector becomes unavailable or available again, not for each batch. */
class LoggingExporter implements SpanExporter {
  private readonly exporter: SpanExporter
  private readonly log: Pick<Logger, 'warn' | 'info'>
  private isFailing = false

  constructor({ url, headers }: TracingConfig, log: Pick<Logger, 'warn' | 'info'>) {
    this.exporter = new OTLPTraceExporter({ url, headers: { ...headers }, timeoutMillis: EXPORT_TIMEOUT_MS })
    this.log = log
  }

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.exporter.export(spans, (result) => {
      this.report(result)
      // Reports success, because the processor would log each failure.
      done({ code: ExportResultCode.SUCCESS })
    })
  }

  shutdown(): Promise<void> {
    return this.exporter.shutdown()
  }

  private report({ code, error }: ExportResult): void {
    const isFailing = code !== ExportResultCode.SUCCESS
    if (isFailing === this.isFailing) return
    this.isFailing = isFailing
    if (isFailing)
      this.log.warn({ reason: error?.message }, 'trace collector unavailable: traces are dropped')
    else this.log.info('trace collector available again')
  }
}

class OtelSpan implements TraceSpan {
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
    return beginSpan(this.tracer, this.context, name, kind, attributes)
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
