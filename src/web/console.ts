/** Serves the console's files, and one HTML document for all pages under `/console`. */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { brotliDecompressSync } from 'node:zlib'
import { z } from 'zod'
import type { Config } from '../config/config.ts'
import { designHead } from '../design/design.ts'
import { IMMUTABLE } from '../http/response.ts'
import { StartupError } from '../lib/errors.ts'
import type { Random } from '../lib/ids.ts'
import { commonHeaders, filePolicy, type Page, writePage } from './page.ts'

const FileName = z.string().regex(/^[\w.-]+\.(js|css)$/)

/** The manifest that `scripts/build-console.ts` writes. */
const Manifest = z.object({
  main: FileName,
  first: FileName,
  files: z.array(z.object({ file: FileName, needs: z.array(FileName) })),
})

interface ConsoleFile {
  /** Contains a content hash, so the file at this path never changes. */
  readonly path: string
  readonly brotli: Buffer
}

export interface ConsoleAssets {
  readonly files: readonly ConsoleFile[]
  /** Path of the script that selects light or dark mode before the first paint. */
  readonly firstScript: string
  readonly mainScript: string
  readonly preloads: readonly string[]
  readonly styles: readonly string[]
}

const builtFolder = new URL('../../dist/console/', import.meta.url)

export async function loadConsole(): Promise<ConsoleAssets> {
  try {
    const manifest = Manifest.parse(JSON.parse(await readFile(new URL('manifest.json', builtFolder), 'utf8')))
    const files = manifest.files.map(async ({ file }) => ({
      path: pathOf(file),
      brotli: await readFile(new URL(`${file}.br`, builtFolder)),
    }))
    const needed = listNeeded(manifest.files, manifest.main).map(pathOf)
    return {
      files: await Promise.all(files),
      firstScript: pathOf(manifest.first),
      mainScript: pathOf(manifest.main),
      preloads: needed.filter((path) => path.endsWith('.js')),
      styles: needed.filter((path) => path.endsWith('.css')),
    }
  } catch (cause) {
    const path = fileURLToPath(builtFolder)
    throw new StartupError(`The console has not been built in ${path}; run \`npm run build\`.`, { cause })
  }
}

function listNeeded(files: z.infer<typeof Manifest>['files'], start: string): string[] {
  const found = new Set([start])
  for (const name of found) {
    for (const needed of files.find(({ file }) => file === name)?.needs ?? []) found.add(needed)
  }
  found.delete(start)
  return [...found]
}

function pathOf(file: string): string {
  return `/console/assets/${file}`
}

/** Allows style elements from the UI library and the editor, which use the page's nonce. */
function renderConsolePolicy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data: blob:",
    "font-src 'self'",
    "media-src 'self' blob:",
    "connect-src 'self'",
    "frame-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "object-src 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join('; ')
}

interface ConsoleOptions {
  readonly nonce: string
  readonly isDevelopment: boolean
}

function renderConsole(assets: ConsoleAssets, { nonce, isDevelopment }: ConsoleOptions): string {
  const styles = assets.styles.map((path) => `<link rel="stylesheet" href="${path}">\n`)
  const preloads = assets.preloads.map((path) => `<link rel="modulepreload" href="${path}">\n`)
  return `<!doctype html>
<html lang="en"${isDevelopment ? ' data-development' : ''}>
<head>
<meta charset="utf-8">
<title>Parley</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta property="csp-nonce" nonce="${nonce}">
${designHead}
<script src="${assets.firstScript}"></script>
${styles.join('')}${preloads.join('')}<script type="module" src="${assets.mainScript}"></script>
</head>
<body>
<div id="root"></div>
<noscript>The console needs JavaScript. Everything it does is also available through the API; see the <a href="/docs">API reference</a>.</noscript>
</body>
</html>
`
}

const NONCE_BYTES = 16

export function createConsoleFiles({ files }: ConsoleAssets): ReadonlyMap<string, Page> {
  return new Map(files.map((file) => [file.path, filePage(file)]))
}

function filePage({ path, brotli }: ConsoleFile): Page {
  // Few clients do not accept brotli, so the build contains only the compressed files.
  let body: Buffer | undefined
  const headers = {
    ...commonHeaders,
    'Content-Type': `${path.endsWith('.css') ? 'text/css' : 'text/javascript'}; charset=utf-8`,
    'Content-Security-Policy': filePolicy,
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Cache-Control': IMMUTABLE,
    Vary: 'Accept-Encoding',
  }
  return (request, response) => {
    const isSmall = /\bbr\b/.test(String(request.headers['accept-encoding'] ?? ''))
    if (!isSmall) body ??= brotliDecompressSync(brotli)
    const sent = isSmall ? brotli : (body as Buffer)
    const encoding: Record<string, string> = isSmall ? { 'Content-Encoding': 'br' } : {}
    writePage(request, response, { ...headers, ...encoding }, sent)
  }
}

interface Dependencies {
  readonly config: Config
  readonly random: Random
}

export function createConsolePage({ config, random }: Dependencies, assets: ConsoleAssets): Page {
  const { isDevelopment } = config.server
  return (request, response) => {
    const nonce = Buffer.from(random(NONCE_BYTES)).toString('base64')
    const headers = {
      ...commonHeaders,
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': renderConsolePolicy(nonce),
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Cache-Control': 'no-store',
    }
    writePage(request, response, headers, Buffer.from(renderConsole(assets, { nonce, isDevelopment })))
  }
}
