/**
 * Provides the assets that all pages share: the design tokens, the typeface and the mark (docs/design.md).
 */
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import fontPackage from '@fontsource-variable/inter/package.json' with { type: 'json' }
import { IMMUTABLE, type PageFile } from '../http/response.ts'

const fontFolder = join(
  dirname(createRequire(import.meta.url).resolve('@fontsource-variable/inter/package.json')),
  'files',
)
/** Contains the package's version, so the files at these paths never change. */
const fontPath = `/design/inter-${fontPackage.version}`

/** Prevents a layout shift. Until the typeface has loaded, pages show a local font with the same metrics. */
const fallbackFont = `@font-face {
  font-family: "Inter Fallback";
  src: local("Arial"), local("Liberation Sans"), local("Helvetica Neue"), local("Roboto");
  ascent-override: 90.44%;
  descent-override: 22.52%;
  line-gap-override: 0%;
  size-adjust: 107.12%;
}
`

const fontFaces = readFileSync(join(fontFolder, '../wght.css'), 'utf8').replaceAll(
  'url(./files/',
  `url(${fontPath}/`,
)

const style = fontFaces + fallbackFont + readOwn('tokens.css')
const mark = readOwn('mark.svg')

export const stylePath = `/design/style-${digestOf(style)}.css`
export const markPath = `/design/mark-${digestOf(mark)}.svg`

/**
 * The elements for a page's head. Preloads only the font for Latin scripts; other fonts load when text needs
 * them.
 */
export const designHead = `<link rel="icon" href="${markPath}" type="image/svg+xml">
<link rel="preload" href="${fontPath}/inter-latin-wght-normal.woff2" as="font" type="font/woff2" crossorigin>
<link rel="stylesheet" href="${stylePath}">`

/** All files, keyed by path. */
export const designFiles: ReadonlyMap<string, PageFile> = new Map<string, PageFile>([
  [stylePath, { body: { text: style }, headers: headersOf('text/css; charset=utf-8') }],
  [markPath, { body: { text: mark }, headers: headersOf('image/svg+xml') }],
  ...listFonts().map((name): [string, PageFile] => [
    `${fontPath}/${name}`,
    { body: { folder: fontFolder, name }, headers: headersOf('font/woff2') },
  ]),
])

function listFonts(): string[] {
  return Array.from(fontFaces.matchAll(/[\w-]+\.woff2/g), ([name]) => name)
}

function readOwn(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8')
}

function digestOf(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 16)
}

/**
 * Lets pages under `Cross-Origin-Embedder-Policy` use the files, because the widget's frame can be in such a
 * page.
 */
function headersOf(mediaType: string): PageFile['headers'] {
  return {
    'Content-Type': mediaType,
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Cache-Control': IMMUTABLE,
  }
}
