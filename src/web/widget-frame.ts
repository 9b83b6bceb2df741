/** The page that stands in the frame: its document, and who may show it. Decision: 11. */

import type { Config } from '../config/config.ts'
import { parsePublicKey } from '../lib/api-key.ts'
import { escapeAttribute } from '../lib/html.ts'
import type { Dependencies } from './dependencies.ts'
import type { WidgetAssets } from './widget-assets.ts'

/**
 * The origins of the pages that may show the frame of that agent, as `frame-ancestors` lists them; `*` where the agent names none,
 * and for a key that is nobody's: the frame says so itself.
 */
export async function listFrameAncestors(
  deps: Pick<Dependencies, 'agents' | 'keys'>,
  publicKey: string,
): Promise<string> {
  const publicId = parsePublicKey(publicKey)
  const agent = publicId === undefined ? undefined : await deps.agents.findByKey(publicId)
  const isLive = agent !== undefined && (await deps.keys.isLive(agent.row.parent_key_id))
  const origins = isLive ? (agent.definition.embed?.origins ?? []) : []
  return origins.length === 0 ? '*' : ["'self'", ...origins].join(' ')
}

/** Security: 2.7 (Widget frame). */
export function renderFramePolicy(connectOrigins: readonly string[], ancestors: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data: blob:",
    "font-src 'self'",
    `connect-src ${["'self'", ...connectOrigins].join(' ')}`,
    "form-action 'none'",
    "base-uri 'none'",
    "object-src 'none'",
    `frame-ancestors ${ancestors}`,
    "require-trusted-types-for 'script'",
  ].join('; ')
}

/** The document of the frame; what the operator has decided stands in attributes of its root. */
export function renderFrame(
  widget: WidgetAssets,
  { connectOrigins, isProviderKeyAllowed }: Config['widget'],
): string {
  return `<!doctype html>
<html lang="en" data-connect-origins="${escapeAttribute(connectOrigins.join(' '))}" data-allow-provider-key="${isProviderKeyAllowed}">
<head>
<meta charset="utf-8">
<title>Chat</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${widget.frameStyle.path}">
<script type="module" src="${widget.frameScript.path}"></script>
</head>
<body></body>
</html>
`
}
