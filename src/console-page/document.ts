/** The document of the console, and what a browser may do with it. */
import type { ConsoleAssets } from './assets.ts'

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
