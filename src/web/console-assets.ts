/** The built console, read once at start: every file that is served under `/console/assets`. */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { StartupError } from '../lib/errors.ts'

const FileName = z.string().regex(/^[\w.-]+\.(js|css)$/)

/** What `scripts/build-console.ts` writes. */
const Manifest = z.object({
  main: FileName,
  first: FileName,
  files: z.array(z.object({ file: FileName, needs: z.array(FileName) })),
})

/** One file of the console. */
export interface ConsoleFile {
  /** Its path on this server; what is there never changes. */
  readonly path: string
  readonly body: Buffer
  readonly brotli: Buffer
}

export interface ConsoleAssets {
  readonly files: readonly ConsoleFile[]
  /** The path of the script that decides on light or dark before anything is painted. */
  readonly firstScript: string
  /** The path of the console's own script. */
  readonly mainScript: string
  /** The paths of the scripts that one imports. */
  readonly preloads: readonly string[]
  /** The paths of its styles. */
  readonly styles: readonly string[]
}

/** Beside `src`, here as in the package. */
const builtFolder = new URL('../../dist/console/', import.meta.url)

/**
 * Reads the built console.
 * @throws StartupError when it was not built.
 */
export async function loadConsole(folder: URL = builtFolder): Promise<ConsoleAssets> {
  try {
    const manifest = Manifest.parse(JSON.parse(await readFile(new URL('manifest.json', folder), 'utf8')))
    const files = manifest.files.map(async ({ file }) => ({
      path: pathOf(file),
      body: await readFile(new URL(file, folder)),
      brotli: await readFile(new URL(`${file}.br`, folder)),
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
    const path = fileURLToPath(folder)
    throw new StartupError(`The console is not built in ${path}; \`npm run build\` builds it.`, { cause })
  }
}

/** What a file needs, and what that needs, and so on. */
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

/**
 * Security: 2.7 (Console). The nonce is one page's: the UI library and the editor write style elements, which carry it.
 */
export function renderConsolePolicy(nonce: string): string {
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

/** The document; everything one sees of it is made by its script. */
export function renderConsole(assets: ConsoleAssets, nonce: string): string {
  const styles = assets.styles.map((path) => `<link rel="stylesheet" href="${path}">\n`)
  const preloads = assets.preloads.map((path) => `<link rel="modulepreload" href="${path}">\n`)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Parley</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta property="csp-nonce" nonce="${nonce}">
<link rel="icon" href="data:,">
<script src="${assets.firstScript}"></script>
${styles.join('')}${preloads.join('')}<script type="module" src="${assets.mainScript}"></script>
</head>
<body>
<div id="root"></div>
<noscript>The console needs JavaScript. Everything it does can be done over the API, described under <a href="/docs">/docs</a>.</noscript>
</body>
</html>
`
}
