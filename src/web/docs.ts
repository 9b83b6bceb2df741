/**
 * Serves the API reference under `/docs` (Swagger UI, without requests to other hosts), the documentation as
 * Markdown with `/llms.txt`, and the example webhook receivers in `examples/`.
 */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import swaggerPackage from 'swagger-ui-dist/package.json' with { type: 'json' }
import { designHead } from '../design/design.ts'
import { IMMUTABLE, type PageFile } from '../http/response.ts'
import { commonHeaders, type Headers } from './page.ts'

const swaggerFolder = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))
const stylePath = `/docs/swagger-ui-${swaggerPackage.version}.css`
const scriptPath = `/docs/swagger-ui-${swaggerPackage.version}.js`

/** Swagger UI's style sheet needs `data:` for its icons. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Parley API reference</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${designHead}
<link rel="stylesheet" href="${stylePath}">
<link rel="stylesheet" href="/docs/page.css">
<script src="/docs/page.js"></script>
<script src="${scriptPath}" defer></script>
</head>
<body>
<main id="reference"></main>
<noscript>This page needs JavaScript. The API description is available as <a href="/openapi.json">/openapi.json</a>.</noscript>
</body>
</html>
`

/** Hides the column of links between operations, because the API description contains no links. */
const style = `body { margin: 0; background: var(--surface) }
.swagger-ui, .swagger-ui .info .title, .swagger-ui .opblock-tag, .swagger-ui .opblock .opblock-summary-description { font-family: var(--font) }
.swagger-ui .opblock .opblock-summary-path, .swagger-ui code, .swagger-ui pre { font-family: var(--font-mono) }
.swagger-ui .topbar { display: none }
.swagger-ui .response-col_links { display: none }
`

/** Runs in the page's head to set the theme before the first paint. */
const script = `const prefersDark = matchMedia('(prefers-color-scheme: dark)')
const applyTheme = () => document.documentElement.classList.toggle('dark-mode', prefersDark.matches)
prefersDark.addEventListener('change', applyTheme)
applyTheme()

document.addEventListener('DOMContentLoaded', () => {
  SwaggerUIBundle({ url: '/openapi.json', dom_id: '#reference', deepLinking: true, validatorUrl: null })
})
`

/**
 * The API reference's files, keyed by path. The page reads `/openapi.json`, and keeps keys only in memory
 * (ADR 0006).
 */
export const docsPages: ReadonlyMap<string, PageFile> = new Map([
  ['/docs', textFile(html, 'text/html')],
  ['/docs/page.css', textFile(style, 'text/css')],
  ['/docs/page.js', textFile(script, 'text/javascript')],
  [stylePath, packageFile('swagger-ui.css', 'text/css')],
  [scriptPath, packageFile('swagger-ui-bundle.js', 'text/javascript')],
  // The style sheet refers to this file, so developer tools request it.
  [
    '/docs/swagger-ui.css.map',
    {
      body: { folder: swaggerFolder, name: 'swagger-ui.css.map' },
      headers: headersOf('application/json', 'no-cache'),
    },
  ],
])

const pagesFolder = fileURLToPath(new URL('../../docs', import.meta.url))

/** The documentation pages as Markdown, and their index for language models (https://llmstxt.org). */
export const markdownPages: ReadonlyMap<string, PageFile> = new Map([
  ['/llms.txt', textFile(renderIndex(), 'text/plain')],
  ...listPages().map((name): [string, PageFile] => [
    `/docs/${name}`,
    { body: { folder: pagesFolder, name }, headers: headersOf('text/markdown', 'no-cache') },
  ]),
])

const examplesFolder = fileURLToPath(new URL('../../examples', import.meta.url))

/** The example webhook receivers, at paths that match the links in `docs/webhooks.md`. */
export const examplePages: ReadonlyMap<string, PageFile> = new Map(
  listFiles(examplesFolder, /^webhook-.*\.mjs$/).map((name): [string, PageFile] => [
    `/examples/${name}`,
    { body: { folder: examplesFolder, name }, headers: headersOf('text/plain', 'no-cache') },
  ]),
)

function listPages(): string[] {
  return listFiles(pagesFolder, /\.md$/)
}

function listFiles(folder: string, pattern: RegExp): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((name) => pattern.test(name))
    .sort()
}

function renderIndex(): string {
  const links = listPages().map((name) => {
    const text = readFileSync(join(pagesFolder, name), 'utf8')
    const [, title = name, firstSentence] = /^# ([^\n]+)\n+(?:([A-Z].*?\.)(?=\s))?/s.exec(text) ?? []
    const description = firstSentence === undefined ? '' : `: ${toPlainText(firstSentence)}`
    return `- [${title}](/docs/${name})${description}\n`
  })
  return `# Parley

> A self-hosted service for conversational agents and resumable uploads.

## Documentation

${links.join('')}- [API reference as OpenAPI](/openapi.json)
`
}

/** Joins the lines, and removes link targets because they are relative to the page. */
function toPlainText(markdown: string): string {
  return markdown.replaceAll('\n', ' ').replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1')
}

function textFile(text: string, mediaType: string): PageFile {
  return { body: { text }, headers: headersOf(mediaType, 'no-cache') }
}

/** The path contains the package's version, so the file at this path never changes. */
function packageFile(name: string, mediaType: string): PageFile {
  return { body: { folder: swaggerFolder, name }, headers: headersOf(mediaType, IMMUTABLE) }
}

function headersOf(mediaType: string, cacheControl: string): Headers {
  return {
    ...commonHeaders,
    'Content-Type': `${mediaType}; charset=utf-8`,
    'Content-Security-Policy': contentSecurityPolicy,
    'Cache-Control': cacheControl,
  }
}
