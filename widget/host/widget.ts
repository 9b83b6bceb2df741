/**
 * Mounts the widget: the launcher and its window, which load the chat when the visitor needs it (ADR 0064).
 */

import type { WidgetErrorCode } from '../messages.ts'
import { publicPartOf } from '../values.ts'
import { frameAddressOf, isLocal } from './address.ts'
import { dom } from './dom.ts'
import { listen, publish, reportMistake } from './events.ts'
import type { Extras, FrameLink, HostWidget } from './extras.ts'
import { type OpenMemory, recallOpen, rememberOpen } from './open-memory.ts'
import { publishChange, sharedPage, type Widget, type WidgetState } from './page.ts'
import { type GivenOptions, readOptions } from './read-options.ts'
import { createShell } from './shell.ts'
import { loadTheme, withTheme } from './theme.ts'
import { recordWebMcp } from './webmcp.ts'

/** The parts that the loader and the React component provide differently. */
export interface WidgetParts {
  /** The loader script's address. */
  readonly scriptUrl: string | undefined
  readonly loadExtras: () => Promise<Extras>
  readonly importScript: (url: string) => Promise<unknown>
}

/** Maximum time for the server to send the theme, and for the frame to load and respond, in milliseconds. */
const FRAME_TIMEOUT_MS = 15_000

/**
 * Mounts a widget on the page. Returns undefined and calls `onError` if there is already a widget or the
 * container is missing.
 */
export function mountWidget(
  first: GivenOptions,
  { scriptUrl, loadExtras, importScript }: WidgetParts,
): Widget | undefined {
  const page = sharedPage()
  if (page.widget?.iframe.isConnected) return void reportMistake(first, 'already_mounted')
  page.widget?.destroy()
  const { containerId } = first
  const isInline = typeof containerId === 'string'
  if (isInline && !dom.getElementById(containerId))
    return void reportMistake(first, 'container_not_found', containerId)

  const report = (code: WidgetErrorCode, text: string) => reportMistake(given, code, text)
  let given = first
  let options = readOptions(given, (name) => report('invalid_option', name))
  let state: WidgetState = { isReady: false, isOpen: false, hasUnread: false, unreadCount: 0 }
  let memory = options.rememberOpen && !isInline ? recallOpen() : undefined
  let wantsOpen = isInline || (memory === undefined ? options.autoOpen : memory !== 'closed')
  let timer: ReturnType<typeof setTimeout> | undefined
  /** The second script's connection; undefined until the frame is needed. */
  let link: Promise<FrameLink | undefined> | undefined
  const ended = new AbortController()
  const shell = createShell(isInline ? containerId : undefined, {
    onToggle: toggle,
    onEscape: close,
    onApproach: loadFrame,
  })
  const { frame, layout } = shell
  frame.onload = () => {
    // The frame is empty until the visitor needs the chat.
    host.isLoaded = !!frame.src
  }

  const host: HostWidget = {
    layout,
    frame,
    isInline,
    webMcpTools: recordWebMcp(),
    ended,
    get address() {
      return frameAddressOf(options, scriptUrl)
    },
    get options() {
      return options
    },
    get state() {
      return state
    },
    get isExpanded() {
      return memory === 'expanded'
    },
    isLoaded: false,
    open,
    close,
    expand(isExpanded) {
      remember(isExpanded ? 'expanded' : 'open')
      withLink(({ update }) => update())
    },
    change,
    changeLauncher: shell.changeLauncher,
    notify: (name, detail) => publish(options, name, detail),
    report,
    on: listen,
    waitForFrame,
  }

  function change(changes: Partial<WidgetState>): void {
    state = { ...state, ...changes }
    publishChange()
  }

  function waitForFrame(isWaiting: boolean): void {
    clearTimeout(timer)
    timer = isWaiting ? setTimeout(reportSilence, FRAME_TIMEOUT_MS) : undefined
  }

  function reportSilence(): void {
    if (!timer) return
    waitForFrame(false)
    const text = `Does embed.origins list ${location.origin}?`
    report('frame_unreachable', text)
    shell.setOpen(false, false)
    shell.show(false)
    if (isLocal(location.hostname)) withExtras(({ showHint }) => showHint(layout, text))
  }

  /**
   * Shows the launcher. Loads the frame immediately only if the window must be open; otherwise when the page
   * is idle or the visitor needs it.
   */
  function setReady(): void {
    if (ended.signal.aborted) return
    waitForFrame(false)
    shell.paint(withTheme(options))
    shell.show(true)
    change({ isReady: true })
    host.notify('ready')
    if (wantsOpen) setOpen(true, false)
    else if (options.load === 'idle' || memory || isKeyMissing()) whenIdle(loadFrame)
    startExtras()
  }

  /**
   * If the key is missing, the frame loads without waiting for the visitor, because it reports the mistake.
   */
  function isKeyMissing(): boolean {
    return !options.endpoint && publicPartOf(options.apiKey) === ''
  }

  function startExtras(): void {
    const { teaser, rules, sound, titleBadge, debug } = withTheme(options)
    const isPanel = debug && isLocal(location.hostname)
    if (!isInline && (teaser || rules[0] || sound || titleBadge || isPanel))
      withExtras((extras) => extras.startExtras(host))
    checkOptions()
  }

  /** Reports mistakes in options that this script cannot check, before the frame has loaded. */
  function checkOptions(): void {
    if (options.tools[0] || options.headers) withExtras((extras) => extras.checkOptions(host))
  }

  /** Ignores a failure to load the second script. Opening the chat tries again, and reports a failure. */
  function withExtras(act: (extras: Extras) => void): void {
    loadExtras().then(act, () => {})
  }

  function withLink(act: (link: FrameLink) => void): void {
    void link?.then((connected) => connected && act(connected))
  }

  /** Opens or closes the window. Does not move the focus out of a field in which the user may be typing. */
  function setOpen(isOpen: boolean, mayFocus = true): void {
    wantsOpen = isOpen
    if (!state.isReady || state.isOpen === isOpen) return
    if (isOpen) loadFrame()
    remember(isOpen ? (memory === 'expanded' ? memory : 'open') : 'closed')
    const fields = 'input,textarea,[contenteditable]'
    const takesFocus = isOpen && !isInline && mayFocus && !dom.activeElement?.matches(fields)
    shell.setOpen(isOpen, takesFocus)
    change({ isOpen })
    withLink(({ update }) => update(takesFocus))
    host.notify(isOpen ? 'opened' : 'closed')
  }

  function open(): void {
    setOpen(true)
  }

  /** Has no effect on an inline widget, which is always open. */
  function close(): void {
    if (!isInline) setOpen(false)
  }

  function toggle(): void {
    if (wantsOpen) close()
    else open()
  }

  function remember(next: OpenMemory): void {
    memory = next
    if (options.rememberOpen && !isInline) rememberOpen(next)
    layout.classList.toggle('expanded', next === 'expanded')
  }

  /** Reloads the frame only if its address has changed. */
  function loadFrame(): void {
    const { address } = host
    if (ended.signal.aborted || (link && frame.src === address)) return
    host.isLoaded = false
    shell.load(address)
    waitForFrame(true)
    withLink(({ disconnect }) => disconnect())
    link ??= loadExtras().then(
      ({ linkFrame }) => linkFrame(host),
      () => {
        link = undefined
        reportSilence()
        return undefined
      },
    )
  }

  const widget: Widget = {
    get state() {
      return state
    },
    iframe: frame,
    publishTools: () => withLink(({ publishTools }) => publishTools()),
    open,
    close,
    toggle,
    send(type, text) {
      if (text !== undefined) open()
      loadFrame()
      withLink(({ send }) => send(type, text))
    },
    configure(changes) {
      given = { ...given, ...changes }
      options = readOptions(given, (name) => name in changes && report('invalid_option', name))
      shell.paint(withTheme(options))
      if (frame.src) loadFrame()
      withLink(({ update }) => update())
      if (changes.tools || changes.headers) checkOptions()
    },
    destroy() {
      if (page.widget !== widget) return
      page.widget = undefined
      ended.abort()
      waitForFrame(false)
      shell.remove()
      publishChange()
    },
  }
  shell.paint(options)
  shell.attach()
  page.widget = widget
  publishChange()
  waitForFrame(true)
  // Waits for the theme, so that the launcher does not change its color.
  loadTheme(options, scriptUrl, importScript).then(setReady, reportSilence)
  return widget
}

/** Safari does not have `requestIdleCallback`. */
function whenIdle(run: () => void): void {
  ;(window.requestIdleCallback ?? setTimeout)(run)
}
