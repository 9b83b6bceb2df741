/** What the settings say of traces: where they go, and how many. The names are those that OpenTelemetry gives them. */
import type { Environment } from './environment.ts'

/** Where traces are sent to. */
export interface TracingConfig {
  /** Takes OTLP over HTTP. */
  readonly url: string
  /** Sent with every batch; they may hold a key. */
  readonly headers: Readonly<Record<string, string>>
  readonly serviceName: string
  readonly sampler: Sampler
}

/** Which requests are traced. */
export interface Sampler {
  /** A caller who says whether it traces is followed in that. */
  readonly followsCaller: boolean
  /** Of all others, from 0 to 1. */
  readonly share: number
}

/** Undefined when nothing is traced. An endpoint for traces is taken as it is, one for all kinds of news gets their usual path. */
export function toTracingConfig(given: Environment): TracingConfig | undefined {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: all, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: own } = given
  const url = own ?? (all === undefined ? undefined : `${all}/v1/traces`)
  if (url === undefined) return undefined
  return {
    url,
    headers: given.OTEL_EXPORTER_OTLP_HEADERS ?? {},
    serviceName: given.OTEL_SERVICE_NAME,
    sampler: toSampler(given),
  }
}

function toSampler({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: ratio }: Environment): Sampler {
  const followsCaller = name.startsWith('parentbased_')
  if (name.endsWith('traceidratio')) return { followsCaller, share: ratio }
  return { followsCaller, share: name.endsWith('always_on') ? 1 : 0 }
}
