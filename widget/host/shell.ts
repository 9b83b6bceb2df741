/**
 * Builds the widget's element in the page: an open shadow root with the launcher and the window around the
 * frame.
 */

import { dom } from './dom.ts'
import type { LauncherChanges } from './extras.ts'
import type { ReadOptions } from './read-options.ts'
import styles from './shell.css?inline'
import { inLanguage, launcherNames } from './words.ts'

interface Shell {
  readonly frame: HTMLIFrameElement
  readonly layout: HTMLElement
  /** Applies the options for the widget's appearance. */
  readonly paint: (options: ReadOptions) => void
  /** Shows the launcher, unless the page has disabled it. */
  readonly show: (isShown: boolean) => void
  readonly changeLauncher: (changes: LauncherChanges) => void
  readonly setOpen: (isOpen: boolean, takesFocus: boolean) => void
  /** Loads the frame from this address, without adding an entry to the page's session history. */
  readonly load: (address: string) => void
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
  /** Called when the visitor points at the launcher or moves the focus to it. */
  readonly onApproach: () => void
}

/** Builds the widget's element in the container, or as a window above the page. */
export function createShell(
  containerId: string | undefined,
  { onToggle, onEscape, onApproach }: LauncherEvents,
): Shell {
  const host = dom.createElement('parley-chat')
  const root = attachStyledRoot(host)
  const label = make('span', 'label')
  const launcher = make('button', 'launcher', label)
  launcher.setAttribute('aria-controls', 'window')
  launcher.onclick = onToggle
  launcher.onpointerenter = launcher.onfocus = onApproach
  launcher.onkeydown = ({ key }) => {
    if (key === 'Escape') onEscape()
  }
  const frame = dom.createElement('iframe')
  // Browsers without the Web Share API log a warning if the policy contains `web-share`.
  frame.allow = `clipboard-write;microphone${'share' in navigator ? ';web-share' : ''}`
  const pane = make('div', 'window', frame)
  pane.id = 'window'
  const isInline = containerId !== undefined
  host.toggleAttribute('data-inline', isInline)
  const layout = make('div', isInline ? 'inline' : 'overlay', pane)
  if (!isInline) layout.append(launcher)
  root.append(layout)

  let changes: LauncherChanges = {}
  let names: string
  let isShown = false
  let isOpen = false
  let hasLauncher: boolean
  let primary: string
  let focusedBefore: Element | null = null

  function refresh(): void {
    layout.classList.toggle('open', isOpen)
    layout.style.setProperty('--primary', changes.color ?? primary)
    layout.style.setProperty('--icon', changes.iconColor ?? '')
    launcher.hidden = !isShown || !hasLauncher
    launcher.ariaExpanded = `${isOpen}`
    const prefix = label.textContent && `${label.textContent}: `
    const [open, close] = names.split('|')
    launcher.ariaLabel = (isOpen ? close : prefix + open) + (changes.unread ?? '')
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
      theme = 'auto',
      language,
      width = 400,
      height = 720,
      radius = 16,
      primaryColor = '#4f46e5',
      launcherIcon = 'chat',
      launcherLabel = '',
      avatar,
    }) {
      hasLauncher = defaultUI
      primary = primaryColor
      names = inLanguage(launcherNames, language)
      layout.classList.toggle('left', position === 'bottom-left')
      layout.style.colorScheme = theme.replace('auto', 'light dark')
      launcher.dataset.icon = launcherIcon
      launcher.style.backgroundImage =
        launcherIcon === 'avatar' && avatar ? `url(${JSON.stringify(avatar)})` : ''
      label.textContent = launcherLabel
      const variables = { width, height, corner: radius }
      for (const [name, value] of Object.entries(variables))
        layout.style.setProperty(`--${name}`, Number(value) >= 0 ? `${value}px` : `${value}`)
      refresh()
    },
    show(shown) {
      isShown = shown
      refresh()
    },
    changeLauncher(given) {
      changes = { ...changes, ...given }
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
    load(address) {
      frame.remove()
      frame.src = address
      pane.append(frame)
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
