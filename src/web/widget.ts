/** Serves the widget's files, frame and demo page under `/embed`. */
import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import type { AgentDirectory } from '../agents/cache.ts'
import type { AgentDefinition } from '../agents/definition.ts'
import type { AgentTheme } from '../agents/theme.ts'
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
  extras: Part,
  loader: Part,
  frameScript: Part,
  frameWorker: Part,
  frameStyle: Part,
  demoScript: Part,
  demoStyle: Part,
  previewScript: Part,
  previewStyle: Part,
  /** The parts that the frame and its worker load on demand. */
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

/**
 * The strictest policy that still allows a page to embed the widget. `connections` lists the sources for the
 * page's own requests.
 */
const renderPagePolicy = (connections: string, frames: string, ancestors: string, images = "'self' data:") =>
  [
    "default-src 'none'",
    `connect-src ${connections}`,
    "script-src 'self'",
    "style-src 'self'",
    `img-src ${images}`,
    "font-src 'self'",
    `frame-src ${frames}`,
    "form-action 'none'",
    "base-uri 'none'",
    `frame-ancestors ${ancestors}`,
    "require-trusted-types-for 'script'",
  ].join('; ')

const demoPolicy = renderPagePolicy("'self'", "'self'", "'none'")

/** Lets the console show any page behind the widget, and any avatar on its button. */
const previewPolicy = renderPagePolicy("'none'", "'self' https: http:", "'self'", "'self' data: https:")

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

/** Returns `embed` of the key's agent; undefined if the key is not valid, which the frame itself reports. */
async function findEmbed(deps: Dependencies, publicKey: string): Promise<AgentDefinition['embed']> {
  const publicId = parsePublicKey(publicKey)
  const agent = publicId === undefined ? undefined : await deps.agents.findByKey(publicId)
  const isLive = agent !== undefined && (await deps.keys.isLive(agent.row.parent_key_id))
  return isLive ? agent.definition.embed : undefined
}

/** Returns the sources for `frame-ancestors`: every page if the agent lists none. */
function renderAncestors(origins: readonly string[] = []): string {
  return origins.length === 0 ? '*' : ["'self'", ...origins].join(' ')
}

/** Returns the origins of the theme's images that are not `data:` URLs. */
function listImageOrigins({ avatar, logo }: AgentTheme = {}): string[] {
  const urls = [avatar, logo].filter((url) => url?.startsWith('https:'))
  return [...new Set(urls.map((url) => new URL(url as string).origin))]
}

function renderFramePolicy(
  connections: string,
  ancestors: string,
  imageOrigins: readonly string[] = [],
): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `img-src ${["'self'", 'data:', 'blob:', ...imageOrigins].join(' ')}`,
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

/** Renders the attribute with the agent's theme. */
function renderThemeAttribute(theme: AgentTheme = {}): string {
  return `data-agent-theme="${escapeAttribute(JSON.stringify(theme))}"`
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

/**
 * Lets pages of any origin load these files, even with `integrity` or under `Cross-Origin-Embedder-Policy`.
 */
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
    ['/embed/parley.js', loaderPage(deps, widget.loader)],
    ['/embed/agent.js', themePage(deps)],
    ['/embed/frame', framePage(deps, widget)],
    ['/embed/trial', documentPage(renderFrame(widget, 'data-trial'), trialPolicy)],
    ['/embed/preview', documentPage(renderPreview(widget), previewPolicy)],
    ['/demo', demoPage(deps, widget)],
  ])
}

/** Serves the loader; with the key in the address, the script also contains the agent's theme. */
function loaderPage(deps: Dependencies, loader: WidgetPart): Page {
  const plain = filePage(loader, `public, max-age=${LOADER_AGE_SECONDS}`)
  return async (request, response) => {
    const key = keyOf(request)
    if (key === '') return plain(request, response)
    const embed = await findEmbed(deps, key)
    writeScript(request, response, Buffer.concat([Buffer.from(renderTheme(key, embed?.theme)), loader.body]))
  }
}

/** Serves the agent's theme for loaders without the key in their address. */
function themePage(deps: Dependencies): Page {
  return async (request, response) => {
    const key = keyOf(request)
    const embed = await findEmbed(deps, key)
    writeScript(request, response, Buffer.from(renderTheme(key, embed?.theme)))
  }
}

function keyOf({ url }: IncomingMessage): string {
  const key = new URLSearchParams(url?.split('?', 2)[1]).get('key') ?? ''
  return /^agnt_key-[0-9A-Za-z]{12}/.exec(key)?.[0] ?? ''
}

/** Returns code that stores the theme fields for the page (`widget/host/theme.ts`). */
function renderTheme(key: string, { colorScheme, logo: _logo, ...theme }: AgentTheme = {}): string {
  const { avatar, ...others } = theme
  const shown = {
    ...others,
    ...(colorScheme !== undefined && { theme: colorScheme }),
    ...(theme.launcherIcon === 'avatar' && avatar !== undefined && { avatar }),
  }
  return `(window[Symbol.for('parley.agents')]??={})[${JSON.stringify(key)}]=${JSON.stringify(shown)};\n`
}

/** Compressed scripts by their text; themes rarely change. */
const compressed = new LRUCache<string, Buffer>({ max: 200 })

function writeScript(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
  const digest = hash('sha256', body, 'hex').slice(0, 16)
  const encoding = (['br', 'gzip'] as const).find((name) => acceptsEncoding(request, name))
  const entityTag = `"${digest}-${encoding ?? 'identity'}"`
  const headers = {
    ...crossOriginHeaders,
    'Content-Type': 'text/javascript; charset=utf-8',
    'Cache-Control': `public, max-age=${LOADER_AGE_SECONDS}`,
    ETag: entityTag,
    ...(encoding !== undefined && { 'Content-Encoding': encoding }),
  }
  const known = request.headers['if-none-match']
  if (known !== undefined && matchesTag(known, entityTag)) return void response.writeHead(304, headers).end()
  const sent = encoding === undefined ? body : compress(entityTag, encoding, body)
  writePage(request, response, headers, sent)
}

function compress(name: string, encoding: 'br' | 'gzip', body: Buffer): Buffer {
  const known = compressed.get(name)
  if (known !== undefined) return known
  const made =
    encoding === 'br'
      ? brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } })
      : gzipSync(body)
  compressed.set(name, made)
  return made
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

function framePage(deps: Dependencies, widget: WidgetAssets): Page {
  return async (request, response) => {
    const embed = await findEmbed(deps, new URLSearchParams(request.url?.split('?', 2)[1]).get('key') ?? '')
    const connections = ["'self'", ...deps.config.widget.connectOrigins].join(' ')
    const policy = renderFramePolicy(
      connections,
      renderAncestors(embed?.origins),
      listImageOrigins(embed?.theme),
    )
    const attributes = `${renderOperator(deps.config.widget)} ${renderThemeAttribute(embed?.theme)}`
    const body = Buffer.from(renderFrame(widget, attributes))
    const microphone = embed?.dictation ? '(self)' : '()'
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
