/** Serves the widget's loader, frame and demo page under `/embed`. */
import type { IncomingMessage } from 'node:http'
import type { AgentDirectory } from '../agents/cache.ts'
import type { AgentDefinition } from '../agents/definition.ts'
import { matchesOrigin } from '../agents/page-origin.ts'
import type { AgentTheme } from '../agents/theme.ts'
import type { Config } from '../config/config.ts'
import { designHead } from '../design/design.ts'
import { IMMUTABLE } from '../http/response.ts'
import type { KeyDirectory } from '../identity/authenticate.ts'
import { readSessionDigest } from '../identity/sessions.ts'
import { parsePublicKey } from '../lib/api-key.ts'
import { escapeAttribute } from '../lib/html.ts'
import { foreignOriginOf } from '../operations/access.ts'
import { commonHeaders, type Headers, type Page, writePage } from './page.ts'
import {
  crossOriginHeaders,
  filePage,
  LOADER_CACHE,
  type WidgetAssets,
  type WidgetPart,
  writeScript,
} from './widget-files.ts'

/**
 * Renders the strictest content security policy that lets a page embed the widget. `connections` lists the
 * sources for the page's own requests.
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

/** Renders a page on this server that embeds the widget the way any other website would. */
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

/**
 * Returns the `embed` settings of the key's agent. Returns undefined if the agent has none or the key is
 * invalid; the frame itself reports an invalid key.
 */
async function findEmbed(deps: Dependencies, publicKey: string): Promise<AgentDefinition['embed']> {
  const publicId = parsePublicKey(publicKey)
  const agent = publicId === undefined ? undefined : await deps.agents.findByKey(publicId)
  const isLive = agent !== undefined && (await deps.keys.isLive(agent.row.parent_key_id))
  return isLive ? agent.definition.embed : undefined
}

/** Returns the sources for `frame-ancestors`; `*` allows every page if the agent lists no origins. */
function renderAncestors(origins: readonly string[] = []): string {
  return origins.length === 0 ? '*' : ["'self'", ...origins].join(' ')
}

/**
 * Returns the origins of the theme's images that are not `data:` URLs, and those of the images in answers.
 */
function listImageOrigins({
  theme = {},
  imageHosts = [],
}: NonNullable<AgentDefinition['embed']> = {}): string[] {
  const urls = [theme.avatar, theme.logo].filter((url) => url?.startsWith('https:'))
  const ofTheme = urls.map((url) => new URL(url as string).origin)
  return [...new Set([...ofTheme, ...imageHosts.map((host) => `https://${host.toLowerCase()}`)])]
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

const imageOrigin = /^https:\/\/(?:\*\.)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?$/

/**
 * Serves the frame of the console's trial. The console calls the model for the frame, so the frame itself
 * connects to no server (ADR 0063). It loads images only from the origins that the console lists for the
 * unsaved definition.
 */
function trialPage(widget: WidgetAssets): Page {
  const html = renderFrame(widget, 'data-trial')
  return (request, response) => {
    const origins = new URLSearchParams(request.url?.split('?', 2)[1]).getAll('image')
    const policy = renderFramePolicy(
      "'none'",
      "'self'",
      origins.filter((origin) => imageOrigin.test(origin)),
    )
    documentPage(html, policy)(request, response)
  }
}

/** Renders the attributes with the operator's settings. */
function renderOperator({ connectOrigins, isProviderKeyAllowed }: Config['widget']): string {
  const origins = escapeAttribute(connectOrigins.join(' '))
  return `data-connect-origins="${origins}" data-allow-provider-key="${isProviderKeyAllowed}"`
}

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

export function createEmbedPages(deps: Dependencies, widget: WidgetAssets): ReadonlyMap<string, Page> {
  const { frameChunks, ...named } = widget
  const parts = [...Object.values(named), ...frameChunks]
  return new Map<string, Page>([
    ...parts.map((part) => [part.path, filePage(part, IMMUTABLE)] as const),
    [widget.frameWorker.path, filePage(widget.frameWorker, IMMUTABLE, workerPolicy)],
    ['/embed/parley.js', loaderPage(deps, widget.loader)],
    ['/embed/extras.js', filePage(widget.extras, LOADER_CACHE)],
    ['/embed/frame.js', themePage(deps)],
    ['/embed/frame', framePage(deps, widget)],
    ['/embed/trial', trialPage(widget)],
    ['/embed/preview', documentPage(renderPreview(widget), previewPolicy)],
    ['/demo', demoPage(deps, widget)],
  ])
}

/** Serves the loader. If the URL contains the key, the script also contains the agent's theme. */
function loaderPage(deps: Dependencies, loader: WidgetPart): Page {
  const plain = filePage(loader, LOADER_CACHE)
  return async (request, response) => {
    const key = keyOf(request)
    if (key === '') return plain(request, response)
    const embed = await findEmbed(deps, key)
    writeScript(request, response, Buffer.concat([Buffer.from(renderTheme(key, embed?.theme)), loader.body]))
  }
}

const themeHeaders: Headers = { ...crossOriginHeaders, Vary: 'Accept-Encoding, Origin' }

/**
 * Serves the agent's theme to loaders without a key in their URL. Fails for pages that may not show the
 * frame, so that the widget reports this when it is mounted. Browsers send `Origin` when a page imports a
 * script from another origin.
 */
function themePage(deps: Dependencies): Page {
  return async (request, response) => {
    const key = keyOf(request)
    const embed = await findEmbed(deps, key)
    const { origins = [] } = embed ?? {}
    // Some browsers send `Origin` even if the page is on this server, such as the console's preview.
    const origin = foreignOriginOf(request.headers, deps.config.server.publicUrl)
    if (
      origin !== undefined &&
      origins.length > 0 &&
      !origins.some((listed) => matchesOrigin(listed, origin))
    )
      return void response.writeHead(403, { ...themeHeaders, 'Cache-Control': 'no-store' }).end()
    writeScript(request, response, Buffer.from(renderTheme(key, embed?.theme)), themeHeaders)
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

/** A worker uses the policy of its response, which must allow it to load its chunks. */
const workerPolicy = "default-src 'none'; script-src 'self'"

/** Lets pages under `Cross-Origin-Embedder-Policy` show the frame. */
const embeddable: Headers = {
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'cross-origin',
}

/**
 * Other hosts rarely send `Cross-Origin-Resource-Policy` with images, so their images load without
 * credentials.
 */
const embeddableWithImages: Headers = { ...embeddable, 'Cross-Origin-Embedder-Policy': 'credentialless' }

function framePage(deps: Dependencies, widget: WidgetAssets): Page {
  return async (request, response) => {
    const embed = await findEmbed(deps, new URLSearchParams(request.url?.split('?', 2)[1]).get('key') ?? '')
    const connections = ["'self'", ...deps.config.widget.connectOrigins].join(' ')
    const policy = renderFramePolicy(connections, renderAncestors(embed?.origins), listImageOrigins(embed))
    const attributes = `${renderOperator(deps.config.widget)} ${renderThemeAttribute(embed?.theme)}`
    const body = Buffer.from(renderFrame(widget, attributes))
    const microphone = embed?.dictation ? '(self)' : '()'
    const permissions = { 'Permissions-Policy': `camera=(), microphone=${microphone}, geolocation=()` }
    const isolation = embed?.imageHosts === undefined ? embeddable : embeddableWithImages
    writePage(request, response, { ...documentHeaders(policy), ...permissions, ...isolation }, body)
  }
}

function renderPreview(widget: WidgetAssets): string {
  const { previewScript: script, previewStyle: style } = widget
  return renderPage(widget, { title: 'Preview', attributes: '', script, style })
}

/**
 * Marks the demo page if the browser may have a console session; only then does the page request the
 * session's agents.
 */
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
