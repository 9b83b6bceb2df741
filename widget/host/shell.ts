/**
 * Builds the widget's element in the page: an open shadow root with the launcher and the window around the
 * frame.
 */

import type { LauncherWords } from '../messages.ts'
import { dom } from './dom.ts'
import type { ReadOptions } from './read-options.ts'
import styles from './shell.css?inline'

interface Shell {
  readonly frame: HTMLIFrameElement
  /** Applies the options for the widget's appearance. */
  readonly paint: (options: ReadOptions) => void
  /** Shows the launcher, unless the page has disabled it. */
  readonly show: (words: LauncherWords) => void
  readonly setUnread: (count: number, label: string) => void
  readonly setOpen: (isOpen: boolean, takesFocus: boolean) => void
  readonly showHint: (text: string) => void
  /**
   * Inserts the element, and inserts it again whenever the page removes it, for example by replacing its
   * body.
   */
  readonly attach: () => void
  readonly remove: () => void
}

interface LauncherEvents {
  readonly onToggle: () => void
  readonly onEscape: () => void
}

/**
 * Builds the widget's element in the container, or as a window above the page. Follows the visual viewport
 * until `ended` aborts.
 */
export function createShell(
  containerId: string | undefined,
  { onToggle, onEscape }: LauncherEvents,
  ended: AbortController,
): Shell {
  const host = dom.createElement('parley-chat')
  const root = attachStyledRoot(host)
  const badge = make('span', 'badge')
  badge.hidden = true
  const launcher = make('button', 'launcher', badge)
  launcher.setAttribute('aria-controls', 'window')
  launcher.onclick = onToggle
  launcher.onkeydown = ({ key }) => {
    if (key === 'Escape') onEscape()
  }
  const frame = dom.createElement('iframe')
  // Browsers without sharing log a warning about its name.
  frame.allow = `clipboard-write;microphone${'share' in navigator ? ';web-share' : ''}`
  const pane = make('div', 'window', frame)
  pane.id = 'window'
  const isInline = containerId !== undefined
  host.toggleAttribute('data-inline', isInline)
  const layout = make('div', isInline ? 'inline' : 'overlay', pane)
  if (!isInline) layout.append(launcher)
  root.append(layout)
  fitToViewport(layout.style, ended)

  let words: Partial<LauncherWords> = {}
  let unread = ''
  let isOpen = false
  let hasLauncher = true
  let focusedBefore: Element | null = null

  function refresh(): void {
    layout.classList.toggle('open', isOpen)
    launcher.hidden = words.open === undefined || !hasLauncher
    launcher.ariaExpanded = `${isOpen}`
    launcher.ariaLabel = (isOpen ? words.close : words.open) + unread
  }

  function attach(): void {
    if (!host.isConnected) (isInline ? dom.getElementById(containerId) : dom.body)?.append(host)
  }

  const observer = new MutationObserver(attach)
  return {
    frame,
    paint({ defaultUI, position, theme, width, height }) {
      hasLauncher = defaultUI
      layout.classList.toggle('left', position === 'bottom-left')
      layout.style.colorScheme = theme === 'auto' ? 'light dark' : theme
      const variables = { width, height, above: defaultUI ? '72px' : '0px' }
      for (const [name, value] of Object.entries(variables)) layout.style.setProperty(`--${name}`, `${value}`)
      refresh()
    },
    show(given) {
      words = given
      frame.title = given.window
      layout.style.setProperty('--primary', given.color)
      layout.style.setProperty('--icon', given.iconColor)
      root.querySelector('[role]')?.remove()
      refresh()
    },
    setUnread(count, label) {
      badge.textContent = count > 9 ? '9+' : `${count}`
      badge.hidden = count === 0
      unread = count === 0 ? '' : ` (${label})`
      refresh()
    },
    setOpen(open, takesFocus) {
      const hadFocus = root.activeElement === frame
      if (open && !hadFocus) focusedBefore = dom.activeElement
      isOpen = open
      refresh()
      if (isInline) return
      if (takesFocus) frame.focus()
      else if (!open && hadFocus)
        (launcher.hidden ? (focusedBefore as HTMLElement | null) : launcher)?.focus()
    },
    showHint(text) {
      layout.classList.add('open')
      layout.appendChild(make('div', 'window', text)).role = 'alert'
    },
    attach() {
      attach()
      observer.observe(dom.documentElement, { childList: true, subtree: true })
    },
    remove() {
      observer.disconnect()
      host.remove()
    },
  }
}

function attachStyledRoot(host: HTMLElement): ShadowRoot {
  const root = host.attachShadow({ mode: 'open' })
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(styles)
  root.adoptedStyleSheets = [sheet]
  return root
}

function make<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  className: string,
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const element = dom.createElement(name)
  element.className = className
  element.append(...children)
  return element
}

/** Keeps a full-screen window above the on-screen keyboard. */
function fitToViewport(style: CSSStyleDeclaration, ended: AbortController): void {
  const { visualViewport: viewport } = window
  const adapt = () => {
    // If the visitor has zoomed in, the window keeps its size and may be only partly visible.
    if (viewport?.scale !== 1) return
    style.setProperty('--viewport-top', `${viewport.offsetTop}px`)
    style.setProperty('--viewport-height', `${viewport.height}px`)
  }
  adapt()
  for (const name of ['resize', 'scroll']) viewport?.addEventListener(name, adapt, ended)
}
