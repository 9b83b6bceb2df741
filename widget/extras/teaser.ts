/** Shows the teaser: a bubble above the closed launcher, which opens the chat or can be dismissed. */
import type { HostWidget } from '../host/extras.ts'
import { dismissNames, inLanguage } from '../host/words.ts'
import { addStyles } from './styles.ts'

/** Remembers, until the tab is closed, that the visitor has dismissed the teaser. */
const DISMISSED = 'parley-teaser-dismissed'

export function showTeaser({ layout, open, options, ended }: HostWidget, text: string): void {
  if (isDismissed()) return
  addStyles(layout)
  layout.querySelector('.teaser')?.remove()
  const bubble = document.createElement('div')
  bubble.className = 'teaser'
  const message = document.createElement('button')
  message.className = 'teaser-text'
  message.dir = 'auto'
  message.textContent = text
  message.onclick = () => {
    bubble.remove()
    open()
  }
  const close = document.createElement('button')
  close.className = 'teaser-close'
  close.ariaLabel = inLanguage(dismissNames, options.language)
  close.textContent = '×'
  close.onclick = () => {
    bubble.remove()
    dismiss()
  }
  bubble.append(message, close)
  layout.append(bubble)
  ended.signal.addEventListener('abort', () => bubble.remove())
}

function isDismissed(): boolean {
  try {
    return sessionStorage.getItem(DISMISSED) !== null
  } catch {
    return false
  }
}

function dismiss(): void {
  try {
    sessionStorage.setItem(DISMISSED, '1')
  } catch {
    // Without storage, the teaser appears again on the next page.
  }
}
