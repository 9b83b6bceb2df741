/**
 * Starts the second script: page tools, teaser, rules, sound, title badge and debug panel. The loader loads it
 * when the page uses one of them.
 */
import type { ExtraOptions, ExtrasPage } from '../host/extras.ts'
import { watchAttention } from './attention.ts'
import { showDebugPanel } from './debug-panel.ts'
import styles from './extras.css?inline'
import { runRules } from './rules.ts'
import { showTeaser } from './teaser.ts'

export { hostPageTools } from '../host/tools/page-tools.ts'
export { createToolServer } from '../host/tools/tool-server.ts'

/** Starts the parts that the options select; everything ends when `page.ended` aborts. */
export function startExtras(page: ExtrasPage, options: ExtraOptions): void {
  const { teaser, teaserDelay = 3, rules = [], sound, titleBadge, debug } = options
  addStyles(page.layout)
  const first = teaser === undefined ? [] : [{ after: teaserDelay, teaser }]
  runRules(page, [...first, ...rules], ({ open, teaser: text }) => {
    if (page.isOpen()) return
    if (open) page.open()
    else if (text !== undefined) showTeaser(page, text)
  })
  if (sound || titleBadge) watchAttention(page, { sound, titleBadge })
  if (debug && page.isLocal) showDebugPanel(page)
}

/** Adds a constructed style sheet, which every content security policy allows. */
function addStyles(layout: HTMLElement): void {
  const root = layout.getRootNode() as ShadowRoot
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(styles)
  root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet]
}
