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
  readonly layout: HTMLElement
  /** Applies the options for the widget's appearance. */
  readonly paint: (options: ReadOptions) => void
  /** Shows the launcher, unless the page has disabled it. */
  readonly show: () => void
  /** Sets the launcher's texts and colors, which the frame computes. */
  readonly setWords: (words: LauncherWords) => void
  readonly hide: () => void
  readonly setUnread: (count: number, label: string) => void
  readonly setOpen: (isOpen: boolean, takesFocus: boolean) => void
  readonly setExpanded: (isExpanded: boolean) => void
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
  /** The visitor points at the launcher or moves the focus to it. */
  readonly onApproach: () => void
}

/**
 * Builds the widget's element in the container, or as a window above the page. Follows the visual viewport
 * until `ended` aborts.
 */
export function createShell(
  containerId: string | undefined,
  { onToggle, onEscape, onApproach }: LauncherEvents,
  ended: AbortController,
): Shell {
  const host = dom.createElement('parley-chat')
  const root = attachStyledRoot(host)
  const badge = make('span', 'badge')
  badge.hidden = true
  const label = make('span', 'label')
  const launcher = make('button', 'launcher', label, badge)
  launcher.setAttribute('aria-controls', 'window')
  launcher.onclick = onToggle
  launcher.onpointerenter = launcher.onfocus = onApproach
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
  let isShown = false
  let unread = ''
  let isOpen = false
  let hasLauncher = true
  let focusedBefore: Element | null = null

  function refresh(): void {
    layout.classList.toggle('open', isOpen)
    launcher.hidden = !isShown || !hasLauncher
    launcher.ariaExpanded = `${isOpen}`
    const open = [label.textContent, words.open ?? openWords()].filter(Boolean).join(': ')
    launcher.ariaLabel = (isOpen ? (words.close ?? '×') : open) + unread
  }

  function attach(): void {
    if (!host.isConnected) (isInline ? dom.getElementById(containerId) : dom.body)?.append(host)
  }

  const observer = new MutationObserver(attach)
  return {
    frame,
    layout,
    paint({
      defaultUI,
      position,
      theme,
      width = 400,
      height = 720,
      radius = 16,
      primaryColor = '#4f46e5',
      launcherIcon = 'chat',
      launcherLabel = '',
      avatar,
    }) {
      hasLauncher = defaultUI
      layout.classList.toggle('left', position === 'bottom-left')
      layout.style.colorScheme = theme === undefined || theme === 'auto' ? 'light dark' : theme
      launcher.dataset.icon = launcherIcon
      launcher.style.backgroundImage =
        launcherIcon === 'avatar' && avatar ? `url(${JSON.stringify(avatar)})` : ''
      label.textContent = launcherLabel
      const variables = { width, height, corner: radius }
      for (const [name, value] of Object.entries(variables))
        layout.style.setProperty(`--${name}`, Number(value) >= 0 ? `${value}px` : `${value}`)
      layout.style.setProperty('--primary', words.color ?? primaryColor)
      refresh()
    },
    show() {
      isShown = true
      refresh()
    },
    hide() {
      isShown = false
      refresh()
    },
    setWords(given) {
      words = given
      frame.title = given.window
      layout.classList.add('connected')
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
    setExpanded(isExpanded) {
      layout.classList.toggle('expanded', isExpanded)
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

/** The launcher's name until the frame, which contains all translations, has loaded. */
function openWords(): string {
  const words: Readonly<Record<string, string>> = {
    ar: 'فتح المحادثة',
    de: 'Chat öffnen',
    es: 'Abrir chat',
    fr: 'Ouvrir le chat',
    he: 'פתיחת הצ׳אט',
    ja: 'チャットを開く',
    pt: 'Abrir chat',
    zh: '打开聊天',
  }
  return words[navigator.language.slice(0, 2)] ?? 'Open chat'
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
