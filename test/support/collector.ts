/** Runs an OpenTelemetry collector that receives traces over HTTP as JSON. */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'

export interface CollectedSpan {
  readonly name: string
  /** `internal`, `server` or `client`. */
  readonly kind: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  /** The ids of linked spans. */
  readonly links: readonly string[]
  readonly isError: boolean
  readonly attributes: Readonly<Record<string, unknown>>
  /** The resource attributes of the service that sent the span. */
  readonly resource: Readonly<Record<string, unknown>>
}

export interface Collector {
  /** The value for `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly url: string
  readonly spans: readonly CollectedSpan[]
  /** The request headers of every batch. */
  readonly headers: readonly IncomingHttpHeaders[]
  /** Sets the HTTP status of all later responses. */
  answerWith(status: number): void
}

const kinds = ['unspecified', 'internal', 'server', 'client']

/** Starts a collector and stops it when the test ends. */
export async function startCollector(): Promise<Collector> {
  const spans: CollectedSpan[] = []
  const headers: IncomingHttpHeaders[] = []
  let status = 200
  const server = createServer(async (request, response) => {
    const body = (await json(request)) as { resourceSpans: ResourceSpans[] }
    headers.push(request.headers)
    if (status === 200 && request.url === '/v1/traces') spans.push(...body.resourceSpans.flatMap(toSpans))
    response.writeHead(status, { 'Content-Type': 'application/json' }).end('{}')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close().closeAllConnections())
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    headers,
    answerWith(other) {
      status = other
    },
  }
}

interface Attribute {
  readonly key: string
  readonly value: Readonly<Record<string, unknown>>
}

interface ResourceSpans {
  readonly resource: { readonly attributes: readonly Attribute[] }
  readonly scopeSpans: readonly { readonly spans: readonly SentSpan[] }[]
}

interface SentSpan {
  readonly name: string
  readonly kind: number
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly links?: readonly { readonly spanId: string }[]
  readonly status?: { readonly code?: number }
  readonly attributes: readonly Attribute[]
}

function toSpans({ resource, scopeSpans }: ResourceSpans): CollectedSpan[] {
  return scopeSpans
    .flatMap(({ spans }) => spans)
    .map(({ name, kind, traceId, spanId, parentSpanId, links = [], status, attributes }) => ({
      ...{ name, traceId, spanId, parentSpanId },
      kind: kinds[kind] ?? String(kind),
      links: links.map((link) => link.spanId),
      isError: status?.code === 2,
      attributes: toRecord(attributes),
      resource: toRecord(resource.attributes),
    }))
}

function toRecord(attributes: readonly Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, toValue(value)]))
}

function toValue(value: Attribute['value']): unknown {
  const list = value.arrayValue as { readonly values: readonly Attribute['value'][] } | undefined
  if (list !== undefined) return list.values.map(toValue)
  const [plain] = Object.values(value)
  return plain
}
