/** The document of `/demo`: a page of somebody's own, with the widget on it. */
import type { WidgetAssets } from './assets.ts'

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
