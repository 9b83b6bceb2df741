/** Serves the widget's files, frame and demo page under `/embed`. */
import { readFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import type { AgentDirectory } from '../agents/cache.ts'
import type { Config } from '../config/config.ts'
import { designHead } from '../design/design.ts'
import { matchesTag } from '../http/ranges.ts'
import { IMMUTABLE } from '../http/response.ts'
import type { KeyDirectory } from '../identity/authenticate.ts'
import { readSessionDigest } from '../identity/sessions.ts'
import { parsePublicKey } from '../lib/api-key.ts'
import { StartupError } from '../lib/errors.ts'
import { escapeAttribute } from '../lib/html.ts'
import { commonHeaders, filePolicy, type Headers, type Page, writePage } from './page.ts'

const Part = z.object({
  file: z.string().regex(/^[a-z]+-[0-9a-f]{12}\.(js|css)$/),
  integrity: z.string().startsWith('sha384-'),
})

/** The manifest that `scripts/build-widget.ts` writes. */
const Manifest = z.object({
  loader: Part,
  frameScript: Part,
  frameWorker: Part,
  frameStyle: Part,
  demoScript: Part,
  demoStyle: Part,
  previewScript: Part,
  previewStyle: Part,
  /** The parts of the frame and its worker that they load when they need them. */
  frameChunks: z.array(Part),
})
type PartName = Exclude<keyof z.infer<typeof Manifest>, 'frameChunks'>

interface WidgetPart {
  /** Contains a content hash, so the file at this path never changes. */
  readonly path: string
  readonly integrity: string
  readonly body: Buffer
  /** The body in each encoding, best first. Browsers accept brotli only over HTTPS. */
  readonly encoded: readonly (readonly [encoding: 'br' | 'gzip', body: Buffer])[]
}

export type WidgetAssets = Readonly<Record<PartName, WidgetPart>> & {
  readonly frameChunks: readonly WidgetPart[]
}

const builtFolder = new URL('../../dist/widget/', import.meta.url)

export async function loadWidget(folder: URL = builtFolder): Promise<WidgetAssets> {
  try {
    const { frameChunks, ...named } = Manifest.parse(
      JSON.parse(await readFile(new URL('manifest.json', folder), 'utf8')),
    )
    const parts = Object.entries(named).map(async ([name, part]) => [name, await loadPart(folder, part)])
    const chunks = await Promise.all(frameChunks.map((part) => loadPart(folder, part)))
    return { ...Object.fromEntries(await Promise.all(parts)), frameChunks: chunks } as WidgetAssets
  } catch (cause) {
    const path = fileURLToPath(folder)
    throw new StartupError(`The chat widget has not been built in ${path}; run \`npm run build\`.`, { cause })
  }
}

async function loadPart(folder: URL, { file, integrity }: z.infer<typeof Part>): Promise<WidgetPart> {
  const read = (extension: string) => readFile(new URL(file + extension, folder))
  const encoded: WidgetPart['encoded'] = [
    ['br', await read('.br')],
    ['gzip', await read('.gz')],
  ]
  return { path: `/embed/${file}`, integrity, body: await read(''), encoded }
}

/** The strictest policy that still allows a page to embed the widget. `connections` are for the page's own requests. */
const renderPagePolicy = (connections: string, frames: string, ancestors: string) =>
  [
    "default-src 'none'",
    `connect-src ${connections}`,
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    `frame-src ${frames}`,
    "form-action 'none'",
    "base-uri 'none'",
    `frame-ancestors ${ancestors}`,
    "require-trusted-types-for 'script'",
  ].join('; ')

const demoPolicy = renderPagePolicy("'self'", "'self'", "'none'")

/** Lets the console show any page behind the widget. */
const previewPolicy = renderPagePolicy("'none'", "'self' https: http:", "'self'")

interface WidgetPage {
  readonly title: string
  readonly attributes: string
  readonly script: WidgetPart
  readonly style: WidgetPart
}

/** Renders a page of this server that embeds the widget like any other website. */
function renderPage({ loader }: WidgetAssets, { title, attributes, script, style }: WidgetPage): string {
  return `<!doctype html>
<html lang="en" data-loader="${loader.path}" data-integrity="${loader.integrity}"${attributes}>
<head>
<meta charset="utf-8">
<title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
<meta name="color-scheme" content="light dark">
${designHead}
<link rel="stylesheet" href="${style.path}">
<script defer src="${loader.path}" integrity="${loader.integrity}" data-auto-mount="false"></script>
<script type="module" src="${script.path}"></script>
</head>
<body>
<noscript>This page needs JavaScript.</noscript>
</body>
</html>
`
}

interface FrameRules {
  /** Origins for `frame-ancestors`, or `*` if the agent lists none or the key is not valid. */
  readonly ancestors: string
  readonly hasDictation: boolean
}

/** Returns what the agent of the key allows. The frame itself reports an invalid key. */
async function readFrameRules(deps: Dependencies, publicKey: string): Promise<FrameRules> {
  const publicId = parsePublicKey(publicKey)
  const agent = publicId === undefined ? undefined : await deps.agents.findByKey(publicId)
  const isLive = agent !== undefined && (await deps.keys.isLive(agent.row.parent_key_id))
  const { origins = [], dictation = false } = (isLive ? agent.definition.embed : undefined) ?? {}
  return {
    ancestors: origins.length === 0 ? '*' : ["'self'", ...origins].join(' '),
    hasDictation: dictation,
  }
}

function renderFramePolicy(connections: string, ancestors: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data: blob:",
    "font-src 'self'",
    `connect-src ${connections}`,
    "form-action 'none'",
    "base-uri 'none'",
    "object-src 'none'",
    `frame-ancestors ${ancestors}`,
    "require-trusted-types-for 'script'",
  ].join('; ')
}

/** The console's trial calls the model for the frame, so the frame itself connects to no server (ADR 0063). */
const trialPolicy = renderFramePolicy("'none'", "'self'")

/** Renders the attributes with the operator's settings. */
function renderOperator({ connectOrigins, isProviderKeyAllowed }: Config['widget']): string {
  const origins = escapeAttribute(connectOrigins.join(' '))
  return `data-connect-origins="${origins}" data-allow-provider-key="${isProviderKeyAllowed}"`
}

function renderFrame(widget: WidgetAssets, attributes: string): string {
  return `<!doctype html>
<html lang="en" ${attributes} data-worker="${widget.frameWorker.path}">
<head>
<meta charset="utf-8">
<title>Chat</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${designHead}
<link rel="stylesheet" href="${widget.frameStyle.path}">
<script type="module" src="${widget.frameScript.path}"></script>
</head>
<body></body>
</html>
`
}

const LOADER_AGE_SECONDS = 300

/** Lets pages of any origin load these files, also with `integrity` or under `Cross-Origin-Embedder-Policy`. */
const crossOriginHeaders: Headers = {
  ...commonHeaders,
  'Cross-Origin-Resource-Policy': 'cross-origin',
  'Access-Control-Allow-Origin': '*',
  // The frame's worker needs the same policy as the frame.
  'Cross-Origin-Embedder-Policy': 'require-corp',
  Vary: 'Accept-Encoding',
}

export function createEmbedPages(deps: Dependencies, widget: WidgetAssets): ReadonlyMap<string, Page> {
  const { frameChunks, ...named } = widget
  const parts = [...Object.values(named), ...frameChunks]
  return new Map<string, Page>([
    ...parts.map((part) => [part.path, filePage(part, IMMUTABLE)] as const),
    [widget.frameWorker.path, filePage(widget.frameWorker, IMMUTABLE, workerPolicy)],
    ['/embed/parley.js', filePage(widget.loader, `public, max-age=${LOADER_AGE_SECONDS}`)],
    ['/embed/frame', framePage(deps, renderFrame(widget, renderOperator(deps.config.widget)))],
    ['/embed/trial', documentPage(renderFrame(widget, 'data-trial'), trialPolicy)],
    ['/embed/preview', documentPage(renderPreview(widget), previewPolicy)],
    ['/demo', demoPage(deps, widget)],
  ])
}

/** A worker uses the policy of its response, which must allow it to load its chunks. */
const workerPolicy = "default-src 'none'; script-src 'self'"

function filePage(
  { path, body, encoded, integrity }: WidgetPart,
  cacheControl: string,
  policy = filePolicy,
): Page {
  const mediaType = path.endsWith('.css') ? 'text/css' : 'text/javascript'
  const headers = {
    ...crossOriginHeaders,
    'Content-Security-Policy': policy,
    'Content-Type': `${mediaType}; charset=utf-8`,
    'Cache-Control': cacheControl,
  }
  return (request, response) => {
    const [encoding, sent] = encoded.find(([name]) => acceptsEncoding(request, name)) ?? ['', body]
    const entityTag = encoding === '' ? `"${integrity}"` : `"${integrity}-${encoding}"`
    const all = { ...headers, ETag: entityTag, ...(encoding !== '' && { 'Content-Encoding': encoding }) }
    const known = request.headers['if-none-match']
    if (known !== undefined && matchesTag(known, entityTag)) response.writeHead(304, all).end()
    else writePage(request, response, all, sent)
  }
}

function acceptsEncoding({ headers }: IncomingMessage, encoding: string): boolean {
  const accepted = String(headers['accept-encoding'] ?? '').split(',')
  return accepted.some((one) => {
    const [name = '', ...parameters] = one.split(';').map((part) => part.trim().toLowerCase())
    return name === encoding && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
  })
}

/** Lets pages under `Cross-Origin-Embedder-Policy` show the frame. */
const embeddable: Headers = {
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'cross-origin',
}

function framePage(deps: Dependencies, html: string): Page {
  const body = Buffer.from(html)
  return async (request, response) => {
    const key = new URLSearchParams(request.url?.split('?', 2)[1]).get('key') ?? ''
    const { ancestors, hasDictation } = await readFrameRules(deps, key)
    const connections = ["'self'", ...deps.config.widget.connectOrigins].join(' ')
    const policy = renderFramePolicy(connections, ancestors)
    const microphone = hasDictation ? '(self)' : '()'
    const permissions = { 'Permissions-Policy': `camera=(), microphone=${microphone}, geolocation=()` }
    writePage(request, response, { ...documentHeaders(policy), ...permissions, ...embeddable }, body)
  }
}

function renderPreview(widget: WidgetAssets): string {
  const { previewScript: script, previewStyle: style } = widget
  return renderPage(widget, { title: 'Preview', attributes: '', script, style })
}

/** Marks the demo page if the browser may have a console session, so that other browsers send no request. */
function demoPage({ config }: Dependencies, widget: WidgetAssets): Page {
  const { demoScript: script, demoStyle: style } = widget
  const title = 'Parley: the chat widget'
  const [plain, signedIn] = ['', ' data-session'].map((attributes) =>
    documentPage(renderPage(widget, { title, attributes, script, style }), demoPolicy),
  ) as [Page, Page]
  return (request, response) => {
    const maySignIn =
      config.forwardedAuth !== undefined || readSessionDigest(request.headers, config) !== undefined
    return (maySignIn ? signedIn : plain)(request, response)
  }
}

function documentPage(html: string, policy: string): Page {
  const headers = documentHeaders(policy)
  const body = Buffer.from(html)
  return (request, response) => writePage(request, response, headers, body)
}

function documentHeaders(policy: string): Headers {
  return {
    ...commonHeaders,
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': policy,
    'Cache-Control': 'no-store',
  }
}

interface Dependencies {
  readonly config: Config
  readonly keys: KeyDirectory
  readonly agents: AgentDirectory
}
