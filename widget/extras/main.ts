/**
 * Starts the second script: the connection to the frame, teaser, rules, sound, title badge and debug panel.
 * The page loads it when it uses one of them.
 */

import { isLocal } from '../host/address.ts'
import type { Extras } from '../host/extras.ts'
import { withTheme } from '../host/theme.ts'
import { watchAttention } from './attention.ts'
import { showDebugPanel } from './debug-panel.ts'
import { runRules } from './rules.ts'
import { showTeaser } from './teaser.ts'

export { checkOptions } from './check-options.ts'
export { linkFrame } from './frame-link.ts'
export { showHint } from './window.ts'

export const startExtras: Extras['startExtras'] = (widget) => {
  const { teaser, teaserDelay = 3, rules, sound, titleBadge, debug } = withTheme(widget.options)
  const first = teaser === undefined ? [] : [{ after: teaserDelay, teaser }]
  runRules(widget, [...first, ...rules], ({ open, teaser: text }) => {
    if (widget.state.isOpen) return
    if (open) widget.open()
    else if (text !== undefined) showTeaser(widget, text)
  })
  if (sound || titleBadge) watchAttention(widget, { sound, titleBadge })
  if (debug && isLocal(location.hostname)) showDebugPanel(widget)
}
