/** Shows unread messages and developer hints, and keeps the window above the on-screen keyboard. */
import type { HostWidget } from '../host/extras.ts'
import { addStyles } from './styles.ts'

export function setUnread({ layout, changeLauncher }: HostWidget, count: number, label: string): void {
  layout.querySelector('.badge')?.remove()
  changeLauncher({ unread: count === 0 ? '' : ` (${label})` })
  if (count === 0) return
  addStyles(layout)
  const badge = document.createElement('span')
  badge.className = 'badge'
  badge.textContent = count > 9 ? '9+' : `${count}`
  layout.querySelector('.launcher')?.append(badge)
}

/** Keeps a full-screen window above the on-screen keyboard, until the widget ends. */
export function fitToViewport({ layout, ended }: HostWidget): void {
  const { visualViewport: viewport } = window
  const adapt = () => {
    // If the visitor has zoomed in, the window keeps its size and may be only partly visible.
    if (viewport?.scale !== 1) return
    layout.style.setProperty('--viewport-top', `${viewport.offsetTop}px`)
    layout.style.setProperty('--viewport-height', `${viewport.height}px`)
  }
  adapt()
  for (const name of ['resize', 'scroll']) viewport?.addEventListener(name, adapt, ended)
}

export function showHint(layout: HTMLElement, text: string): void {
  const hint = document.createElement('div')
  hint.className = 'window'
  hint.role = 'alert'
  hint.textContent = text
  layout.classList.add('open')
  layout.append(hint)
}
