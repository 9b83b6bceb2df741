/** The built widget, read once at start: every file that is served under `/embed`, with the name and the digest it has. */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { StartupError } from '../lib/errors.ts'

const Part = z.object({
  file: z.string().regex(/^[a-z]+-[0-9a-f]{12}\.(js|css)$/),
  integrity: z.string().startsWith('sha384-'),
})

/** What `scripts/build-widget.ts` writes. */
const Manifest = z.object({
  loader: Part,
  frameScript: Part,
  frameStyle: Part,
  demoScript: Part,
  demoStyle: Part,
})
type PartName = keyof z.infer<typeof Manifest>

/** One file of the widget. */
export interface WidgetPart {
  /** Its path on this server; what is there never changes. */
  readonly path: string
  /** For the attribute `integrity` of its tag. */
  readonly integrity: string
  readonly body: Buffer
}

export type WidgetAssets = Readonly<Record<PartName, WidgetPart>>

/** Beside `src`, here as in the package. */
const builtFolder = new URL('../../dist/widget/', import.meta.url)

/**
 * Reads the built widget.
 * @throws StartupError when it was not built.
 */
export async function loadWidget(folder: URL = builtFolder): Promise<WidgetAssets> {
  try {
    const manifest = Manifest.parse(JSON.parse(await readFile(new URL('manifest.json', folder), 'utf8')))
    const parts = Object.entries(manifest).map(async ([name, { file, integrity }]) => {
      const body = await readFile(new URL(file, folder))
      return [name, { path: `/embed/${file}`, integrity, body }] as const
    })
    return Object.fromEntries(await Promise.all(parts)) as WidgetAssets
  } catch (cause) {
    const path = fileURLToPath(folder)
    throw new StartupError(`The chat widget is not built in ${path}; \`npm run build\` builds it.`, { cause })
  }
}

/** The strictest a page can be with the widget on it: only this server's scripts, style and frame. */
export const demoPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  'img-src data:',
  "frame-src 'self'",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

/** The document; the rest of the page is made by its script. */
export function renderDemo({ loader, demoScript, demoStyle }: WidgetAssets): string {
  return `<!doctype html>
<html lang="en" data-loader="${loader.path}" data-integrity="${loader.integrity}">
<head>
<meta charset="utf-8">
<title>Parley: the chat widget</title>
<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${demoStyle.path}">
<script defer src="${loader.path}" integrity="${loader.integrity}" data-auto-mount="false"></script>
<script type="module" src="${demoScript.path}"></script>
</head>
<body>
<noscript>This page needs JavaScript.</noscript>
</body>
</html>
`
}
