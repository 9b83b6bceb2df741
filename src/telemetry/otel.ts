/** Traces through OpenTelemetry: loaded only where the settings name a collector. Decision: 2 (`OTEL_EXPORTER_OTLP_ENDPOINT`). */
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

/** Security: 2.12 (shutdown is bounded). */
const LAST_BATCH_WITHIN_MS = 2_000
const SEND_EVERY_MS = 2_000
/** Spans that wait to be sent; beyond that new ones are lost. */
const MOST_WAITING = 2_048
/** Uploads whose last request is remembered. */
const MOST_UPLOADS = 1_000

export interface TracingOptions {
  readonly version: string
  readonly log: Pick<Logger, 'warn' | 'info'>
}

/** Begins to trace; a collector that is away is no failure. */
export function openTracing(config: TracingConfig, { version, log }: TracingOptions): Tracing {
  const processor = new BatchSpanProcessor({
    exporter: new TellingExporter(config, log),
    maxQueueSize: MOST_WAITING,
    scheduledDelayMillis: SEND_EVERY_MS,
    exportTimeoutMillis: 2 * EXPORT_WITHIN_MS,
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
    return this.begin(caller, name, 'server', attributes, [])
  }

  linkUpload(blob: string, request: OtelSpan): void {
    this.uploads.set(blob, request.span.spanContext())
  }

  beginJob(blob: string, name: string, attributes: SpanAttributes): OtelSpan {
    const upload = this.uploads.get(blob)
    return this.begin(ROOT_CONTEXT, name, 'internal', attributes, upload === undefined ? [] : [upload])
  }

  async close(): Promise<void> {
    await within(LAST_BATCH_WITHIN_MS, this.provider.shutdown()).catch(() => {})
  }

  private begin(
    parent: Context,
    name: string,
    kind: SpanKind,
    attributes: SpanAttributes,
    links: readonly SpanContext[],
  ): OtelSpan {
    const options = { kind: kinds[kind], links: links.map((context) => ({ context })) }
    const begun = new OtelSpan(this.tracer, this.tracer.startSpan(name, options, parent), parent)
    begun.set(attributes)
    return begun
  }
}

function toSampler({ followsCaller, share }: TracingConfig['sampler']): Sampler {
  const root = samplerOf(share)
  return followsCaller ? new ParentBasedSampler({ root }) : root
}

function samplerOf(share: number): Sampler {
  if (share === 0) return new AlwaysOffSampler()
  return share === 1 ? new AlwaysOnSampler() : new TraceIdRatioBasedSampler(share)
}

/** For one batch, with all its attempts. */
export const EXPORT_WITHIN_MS = 3_000

export class TellingExporter implements SpanExporter {
  private readonly exporter: SpanExporter
  private readonly log: Pick<Logger, 'warn' | 'info'>
  private isFailing = false

  constructor({ url, headers }: TracingConfig, log: Pick<Logger, 'warn' | 'info'>) {
    this.exporter = new OTLPTraceExporter({ url, headers: { ...headers }, timeoutMillis: EXPORT_WITHIN_MS })
    this.log = log
  }

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.exporter.export(spans, (result) => {
      this.tell(result)
      // Whoever hears of a failure would write it down each time.
      done({ code: ExportResultCode.SUCCESS })
    })
  }

  shutdown(): Promise<void> {
    return this.exporter.shutdown()
  }

  private tell({ code, error }: ExportResult): void {
    const isFailing = code !== ExportResultCode.SUCCESS
    if (isFailing === this.isFailing) return
    this.isFailing = isFailing
    if (isFailing)
      this.log.warn({ reason: error?.message }, 'traces cannot be sent; they are lost until they can')
    else this.log.info('traces can be sent again')
  }
}

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
