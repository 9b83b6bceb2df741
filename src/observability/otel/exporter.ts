/** Sends spans to a collector, and says once when that begins or ceases to fail. */
import { type ExportResult, ExportResultCode } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace'
import type { Logger } from 'pino'
import type { TracingConfig } from '../../config-tracing.ts'

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
