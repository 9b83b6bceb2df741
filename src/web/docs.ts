/** The API reference page under `/docs`: Swagger UI from its npm package, without a request to anywhere else. */

import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import swaggerPackage from 'swagger-ui-dist/package.json' with { type: 'json' }
import { IMMUTABLE, type PageFile } from '../http/response.ts'

const swaggerFolder = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))
const stylePath = `/docs/swagger-ui-${swaggerPackage.version}.css`
const scriptPath = `/docs/swagger-ui-${swaggerPackage.version}.js`

/** Only this origin; `data:` for the icons inside Swagger UI's style sheet. Security: 2.7. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
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
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${stylePath}">
<link rel="stylesheet" href="/docs/page.css">
<script src="/docs/page.js"></script>
<script src="${scriptPath}" defer></script>
</head>
<body>
<main id="reference"></main>
<noscript>This page needs JavaScript. The description it shows is <a href="/openapi.json">/openapi.json</a>.</noscript>
</body>
</html>
`

/** Our document describes no links between operations, so their column would only say so on every answer. */
const style = `body { margin: 0 }
.swagger-ui .response-col_links { display: none }
`

/** Runs in the page's head, so that the theme stands before the first paint. */
const script = `const prefersDark = matchMedia('(prefers-color-scheme: dark)')
const applyTheme = () => document.documentElement.classList.toggle('dark-mode', prefersDark.matches)
prefersDark.addEventListener('change', applyTheme)
applyTheme()

document.addEventListener('DOMContentLoaded', () => {
  SwaggerUIBundle({ url: '/openapi.json', dom_id: '#reference', deepLinking: true, validatorUrl: null })
})
`

/**
 * Every path of the reference with what it answers to GET and HEAD. The page reads the document from `/openapi.json`. Keys
 * typed into it stay in the page's memory. Decision: 3 (`/docs` has a content security policy of its own), ADR 0006.
 */
export const docsPages: ReadonlyMap<string, PageFile> = new Map([
  ['/docs', textPage(html, 'text/html')],
  ['/docs/page.css', textPage(style, 'text/css')],
  ['/docs/page.js', textPage(script, 'text/javascript')],
  [stylePath, packagePage('swagger-ui.css', 'text/css')],
  [scriptPath, packagePage('swagger-ui-bundle.js', 'text/javascript')],
])

function textPage(text: string, mediaType: string): PageFile {
  return { body: { text }, headers: pageHeaders(mediaType, 'no-cache') }
}

/** A file whose path carries the package's version: it never changes under that path. */
function packagePage(name: string, mediaType: string): PageFile {
  return {
    body: { folder: swaggerFolder, name },
    headers: pageHeaders(mediaType, IMMUTABLE),
  }
}

function pageHeaders(mediaType: string, cacheControl: string): Readonly<Record<string, string>> {
  return {
    'Content-Type': `${mediaType}; charset=utf-8`,
    'Content-Security-Policy': contentSecurityPolicy,
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cache-Control': cacheControl,
  }
}
