/** What the widget puts into the page: one element with an open shadow root, in it the launcher and the window with the frame. */
import type { LauncherWords } from '../messages.ts'
import { readableOn } from './color.ts'
import type { ReadOptions } from './read-options.ts'
import { PHONE, styles } from './styles.ts'

export interface Shell {
  readonly frame: HTMLIFrameElement
  /** Takes on what the options say of looks. */
  readonly paint: (options: ReadOptions) => void
  readonly setWords: (words: LauncherWords) => void
  readonly setUnread: (count: number, label: string) => void
  /** The launcher appears, if there is to be one. */
  readonly show: () => void
  readonly setOpen: (isOpen: boolean, takesFocus: boolean) => void
  /** Tells a developer of what went wrong, where one is looking. */
  readonly showHint: (text: string) => void
  /** Puts everything into the page and has the frame load; called again it loads another one. */
  readonly attach: (source: string) => void
  readonly remove: () => void
}

const SVG = 'http://www.w3.org/2000/svg'
const bubble =
  'M12 3C6.5 3 2 6.8 2 11.5c0 2.3 1.1 4.4 2.9 5.9L4 21.5l4.6-2c1.1.3 2.2.5 3.4.5 5.5 0 10-3.8 10-8.5S17.5 3 12 3z'
const cross = 'M6.4 5 5 6.4l5.6 5.6L5 17.6 6.4 19l5.6-5.6 5.6 5.6 1.4-1.4-5.6-5.6L19 6.4 17.6 5 12 10.6z'

/** What a person does with the launcher. */
export interface LauncherEvents {
  readonly onToggle: () => void
  readonly onEscape: () => void
}

/** Builds it into `container`, or above the page. */
export function createShell(container: Element | undefined, events: LauncherEvents): Shell {
  const { host, root, layout, pane, launcher, badge, frame } = build(container, events)
  const stopFitting = fitToViewport(layout)
  let words: LauncherWords = { open: '', close: '', window: '' }
  let unread = ''
  let isOpen = false
  let isShown = false
  let hasLauncher = true
  let focusedBefore: Element | null = null

  function refresh(): void {
    launcher.hidden = !isShown || !hasLauncher
    layout.classList.toggle('open', isOpen)
    const name = isOpen ? words.close : words.open
    launcher.setAttribute('aria-expanded', String(isOpen))
    launcher.setAttribute('aria-label', unread === '' ? name : `${name} (${unread})`)
    frame.title = words.window
  }

  function returnFocus(): void {
    if (!launcher.hidden) launcher.focus()
    else if (focusedBefore instanceof HTMLElement) focusedBefore.focus()
  }

  return {
    frame,
    paint(options) {
      hasLauncher = options.defaultUI
      layout.classList.toggle('left', options.position === 'bottom-left')
      layout.dataset.theme = options.theme
      for (const [name, value] of Object.entries(toVariables(options))) {
        layout.style.setProperty(`--${name}`, value)
      }
      refresh()
    },
    setWords(given) {
      words = given
      refresh()
    },
    setUnread(count, label) {
      badge.textContent = count > 9 ? '9+' : String(count)
      badge.hidden = count === 0
      unread = count === 0 ? '' : label
      refresh()
    },
    show() {
      isShown = true
      for (const hint of root.querySelectorAll('.hint')) hint.remove()
      refresh()
    },
    setOpen(open, takesFocus) {
      const hadFocus = root.activeElement === frame
      isOpen = open
      if (open && !hadFocus) focusedBefore = document.activeElement
      refresh()
      if (open && takesFocus) frame.focus()
      else if (hadFocus) returnFocus()
    },
    showHint(text) {
      const hint = make('div', 'hint')
      hint.setAttribute('role', 'alert')
      hint.textContent = text
      layout.append(hint)
    },
    attach: (source) => {
      frame.src = source
      pane.append(frame)
      if (!host.isConnected) (container ?? document.body).append(host)
    },
    remove() {
      stopFitting()
      host.remove()
    },
  }
}

/** How it differs from page to page, for the style sheet. */
function toVariables({
  primaryColor,
  width,
  height,
  defaultUI,
}: ReadOptions): Readonly<Record<string, string>> {
  return {
    primary: primaryColor,
    'on-primary': readableOn(primaryColor),
    width: String(width),
    height: String(height),
    above: defaultUI ? '72px' : '0px',
  }
}

function build(container: Element | undefined, { onToggle, onEscape }: LauncherEvents) {
  const host = document.createElement('parley-chat')
  const root = host.attachShadow({ mode: 'open' })
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(styles)
  root.adoptedStyleSheets = [sheet]
  host.toggleAttribute('data-inline', container !== undefined)

  const frame = document.createElement('iframe')
  frame.allow = 'clipboard-write'
  const pane = make('div', 'window')
  pane.id = 'window'
  const badge = make('span', 'badge')
  badge.hidden = true
  const launcher = make('button', 'launcher', drawIcon('bubble', bubble), drawIcon('cross', cross), badge)
  launcher.type = 'button'
  launcher.setAttribute('aria-controls', pane.id)
  launcher.addEventListener('click', onToggle)
  launcher.addEventListener('keydown', ({ key }) => key === 'Escape' && onEscape())
  const layout = make('div', container === undefined ? 'overlay' : 'inline', pane)
  if (container === undefined) layout.append(launcher)
  root.append(layout)
  return { host, root, layout, pane, launcher, badge, frame }
}

function make<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  className: string,
  ...children: Node[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name)
  element.className = className
  element.append(...children)
  return element
}

function drawIcon(name: string, path: string): SVGElement {
  const icon = document.createElementNS(SVG, 'svg')
  icon.setAttribute('class', name)
  icon.setAttribute('viewBox', '0 0 24 24')
  icon.setAttribute('aria-hidden', 'true')
  const shape = document.createElementNS(SVG, 'path')
  shape.setAttribute('fill', 'currentColor')
  shape.setAttribute('d', path)
  icon.append(shape)
  return icon
}

/** Keeps a full-screen window within what a keyboard on the screen leaves of it. */
function fitToViewport({ style }: HTMLElement): () => void {
  const viewport = window.visualViewport
  if (viewport === null || viewport === undefined) return () => {}
  const adapt = () => {
    // Of a page that was zoomed into only a part is visible, and should be.
    if (!matchMedia(PHONE).matches || viewport.scale > 1) return
    style.setProperty('--viewport-top', `${viewport.offsetTop}px`)
    style.setProperty('--viewport-height', `${viewport.height}px`)
  }
  adapt()
  for (const name of ['resize', 'scroll']) viewport.addEventListener(name, adapt)
  return () => {
    for (const name of ['resize', 'scroll']) viewport.removeEventListener(name, adapt)
  }
}
