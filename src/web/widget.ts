/** What is served under `/embed` and at `/demo`: the widget's files and the two documents around them. Security: 2.7. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Dependencies } from './dependencies.ts'
import { demoPolicy, renderDemo, type WidgetAssets, type WidgetPart } from './widget-assets.ts'
import { listFrameAncestors, renderFrame, renderFramePolicy } from './widget-frame.ts'

/** Answers a GET or a HEAD. */
export type Page = (request: IncomingMessage, response: ServerResponse) => Promise<void> | void

type Headers = Readonly<Record<string, string>>

const mediaTypes = { html: 'text/html', js: 'text/javascript', css: 'text/css' } as const

/** Longest a browser shows an old loader, in seconds. */
const LOADER_AGE_SECONDS = 300

const common: Headers = { 'X-Content-Type-Options': 'nosniff', 'Referrer-Policy': 'no-referrer' }

/** Files that pages of any origin load, also with `integrity` or under `Cross-Origin-Embedder-Policy`. */
const forEverybody: Headers = {
  ...common,
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'cross-origin',
  'Access-Control-Allow-Origin': '*',
}

/** Every path of the widget with what answers there. Contract: Embeddable widget script; Decision: 11. */
export function createEmbedPages(
  deps: Pick<Dependencies, 'agents' | 'keys' | 'config'>,
  widget: WidgetAssets,
): ReadonlyMap<string, Page> {
  const parts = Object.values(widget)
  return new Map<string, Page>([
    ...parts.map((part) => [part.path, filePage(part, 'public, max-age=31536000, immutable')] as const),
    ['/embed/parley.js', filePage(widget.loader, `public, max-age=${LOADER_AGE_SECONDS}`)],
    ['/embed/frame', framePage(deps, renderFrame(widget, deps.config.widget))],
    ['/demo', documentPage(renderDemo(widget), demoPolicy)],
  ])
}

function filePage({ path, body, integrity }: WidgetPart, cacheControl: string): Page {
  const extension = path.endsWith('.css') ? 'css' : 'js'
  const headers = { ...forEverybody, ...contentHeaders(extension, body), ETag: `"${integrity}"` }
  return (request, response) => {
    const head = { ...headers, 'Cache-Control': cacheControl }
    if (isKnown(request, head.ETag))
      return void response.writeHead(304, without(head, 'Content-Length')).end()
    write(request, response, head, body)
  }
}

function framePage(deps: Pick<Dependencies, 'agents' | 'keys' | 'config'>, html: string): Page {
  const body = Buffer.from(html)
  return async (request, response) => {
    const key = new URLSearchParams(request.url?.split('?', 2)[1]).get('key') ?? ''
    const ancestors = await listFrameAncestors(deps, key)
    const policy = renderFramePolicy(deps.config.widget.connectOrigins, ancestors)
    const permissions = { 'Permissions-Policy': 'camera=(), microphone=(), geolocation=()' }
    write(request, response, { ...documentHeaders(body, policy), ...permissions }, body)
  }
}

function documentPage(html: string, policy: string): Page {
  const body = Buffer.from(html)
  return (request, response) => write(request, response, documentHeaders(body, policy), body)
}

function documentHeaders(body: Buffer, policy: string): Headers {
  return {
    ...common,
    ...contentHeaders('html', body),
    'Content-Security-Policy': policy,
    'Cache-Control': 'no-store',
  }
}

function contentHeaders(extension: keyof typeof mediaTypes, body: Buffer): Headers {
  return { 'Content-Type': `${mediaTypes[extension]}; charset=utf-8`, 'Content-Length': String(body.length) }
}

function write(request: IncomingMessage, response: ServerResponse, headers: Headers, body: Buffer): void {
  response.writeHead(200, headers)
  response.end(request.method === 'HEAD' ? undefined : body)
}

/** Protocol: RFC 9110, 13.1.2; tags of any strength are compared by what they say. */
function isKnown({ headers }: IncomingMessage, tag: string): boolean {
  const sent = headers['if-none-match']
  return sent === '*' || (sent?.split(',').some((one) => one.trim().replace(/^W\//, '') === tag) ?? false)
}

function without(headers: Headers, name: string): Headers {
  return Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name))
}
