/** Traces through OpenTelemetry: loaded only where the settings name a collector. Decision: 2 (`OTEL_EXPORTER_OTLP_ENDPOINT`). */
import type { IncomingHttpHeaders } from 'node:http'
import {
  type Context,
  defaultTextMapGetter,
  ROOT_CONTEXT,
  type SpanContext,
  type Tracer,
} from '@opentelemetry/api'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { TracingConfig } from '../../config-tracing.ts'
import { within } from '../../shared-state/within.ts'
import type { SpanAttributes, SpanKind, Tracing } from '../tracing.ts'
import { EXPORT_WITHIN_MS, TellingExporter } from './exporter.ts'
import { kinds, OtelSpan, propagator } from './span.ts'

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
