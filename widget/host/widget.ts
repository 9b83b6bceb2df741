/** The widget on a page: launcher, frame, and everything between the page and the person who chats in it. */
import type { FrameMessage } from '../messages.ts'
import { type Channel, openChannel } from './channel.ts'
import { toContext } from './context.ts'
import { callPage, dispatch, type Insertion, WidgetError, type WidgetEvents } from './events.ts'
import { announceChange, sharedPage } from './page.ts'
import { hostPageTools } from './page-tools.ts'
import { type GivenOptions, type ReadOptions, readOptions, toFrameOptions } from './read-options.ts'
import { note, warn } from './say.ts'
import { createShell, type Shell } from './shell.ts'
import { createToolServer, type ToolServer } from './tool-server.ts'
import { hostWebMcpTools, recordWebMcp } from './webmcp.ts'
import { frameAddressOf, isLocalPage, widgetOriginOf } from './widget-origin.ts'

/** What can be known of the widget from outside; another object after every change. */
export interface WidgetState {
  readonly isReady: boolean
  readonly isOpen: boolean
  readonly hasUnread: boolean
}

export class Widget {
  state: WidgetState = { isReady: false, isOpen: false, hasUnread: false }
  #given: GivenOptions
  #options: ReadOptions
  readonly #scriptUrl: string | undefined
  #container: Element | undefined
  #shell: Shell
  #channel: Channel
  readonly #tools: ToolServer
  #wantsOpen: boolean
  readonly #recorded = recordWebMcp()

  /** Puts the widget on the page. Use `mountWidget`. */
  constructor(given: GivenOptions, options: ReadOptions, scriptUrl?: string) {
    this.#given = given
    this.#options = options
    this.#scriptUrl = scriptUrl
    this.#wantsOpen = options.autoOpen
    this.#tools = createToolServer(
      () => this.#listTools(),
      (message) => this.#channel.post({ type: 'mcp', message }),
    )
    this.#recorded.listeners.add(this.#tools.announceTools)
    ;[this.#shell, this.#channel] = this.#build()
  }

  get iframe(): HTMLIFrameElement {
    return this.#shell.frame
  }

  /** Where the widget comes from and stands; another one means that it is put on the page anew. */
  get #place(): string {
    const { widgetUrl, endpoint, apiKey, containerId } = this.#options
    const origin = widgetOriginOf(widgetUrl, endpoint, this.#scriptUrl)
    return JSON.stringify([frameAddressOf(origin, apiKey), containerId])
  }

  #build(): [Shell, Channel] {
    const { widgetUrl, endpoint, apiKey, containerId } = this.#options
    const origin = widgetOriginOf(widgetUrl, endpoint, this.#scriptUrl)
    this.#container = findContainer(containerId)
    const shell = createShell(this.#container, {
      onToggle: () => this.toggle(),
      onEscape: () => this.close(),
    })
    shell.paint(this.#options)
    const channel = openChannel(shell.frame, origin, {
      onConnect: () => this.#introduce(),
      onMessage: (message) => this.#receive(message),
      onSilence: () => this.#tellSilence(origin),
    })
    shell.attach(frameAddressOf(origin, apiKey))
    return [shell, channel]
  }

  #remove(): void {
    this.#tools.reset()
    this.#channel.close()
    this.#shell.remove()
    this.#change({ isReady: false, isOpen: false, hasUnread: false })
  }

  #change(changes: Partial<WidgetState>): void {
    this.state = { ...this.state, ...changes }
    announceChange()
  }

  #introduce(): void {
    this.#tools.reset()
    this.#channel.post({ type: 'configure', options: toFrameOptions(this.#options) })
    this.#postContext()
    this.#channel.post({ type: 'visibility', isOpen: this.state.isOpen })
  }

  #postContext(): void {
    const context = toContext(this.#options.context)
    if (typeof context === 'string')
      this.#fail(context, 'The context is not used: see the table of error codes.')
    else this.#channel.post({ type: 'context', context })
  }

  #receive(message: FrameMessage): void {
    if (message.type === 'ready') this.#becomeReady(message.words)
    else if (message.type === 'words') this.#shell.setWords(message.words)
    else if (message.type === 'close') this.close()
    else if (message.type === 'mcp') this.#tools.receive(message.message)
    else if (message.type === 'error') this.#fail(message.code, message.message)
    else if (message.type === 'insert') this.#insert({ text: message.text, close: message.close })
    else if (message.type === 'unread') this.#setUnread(message.count, message.label)
    else this.#tell('user-share', { kind: message.kind, text: message.text }, this.#options.onUserShare)
  }

  #insert(insertion: Insertion): void {
    this.#tell('insert', insertion, this.#options.onInsert)
    if (insertion.close) this.close()
  }

  #setUnread(count: number, label: string): void {
    this.#shell.setUnread(count, label)
    this.#change({ hasUnread: count > 0 })
    this.#tell('unread', { count })
  }

  #becomeReady(words: Extract<FrameMessage, { type: 'ready' }>['words']): void {
    if (this.state.isReady) return
    this.#shell.setWords(words)
    this.#shell.show()
    this.#change({ isReady: true })
    this.#tell('ready', undefined, this.#options.onReady)
    if (this.#wantsOpen || this.#container !== undefined) this.open()
  }

  #tellSilence(origin: string): void {
    this.#fail('frame_unreachable', `The chat at ${origin} does not answer.`)
    if (!isLocalPage()) return
    this.#shell.showHint(
      `Parley: the chat at ${origin} does not show itself here. Either no server answers there, or the agent's embed.origins does not list ${location.origin}. (Only pages on this machine show this hint.)`,
    )
  }

  /** The document hears of it, and the callback. */
  #tell<Name extends keyof WidgetEvents>(
    name: Name,
    detail: WidgetEvents[Name],
    callback?: (detail: WidgetEvents[Name]) => void,
  ): void {
    if (this.#options.debug) note(name)
    dispatch(name, detail)
    if (callback !== undefined) callPage(() => callback(detail))
  }

  #fail(code: WidgetError['code'], message: string): void {
    if (this.#options.debug) note(`error ${code}`)
    reportFailure(this.#options, code, message)
  }

  async #listTools() {
    const own = hostPageTools(this.#options.tools, (call) => {
      if (this.#options.debug) note(`tool-call ${call.tool}`)
      dispatch('tool-call', call)
      return this.#options.onToolCall?.(call.tool, call.args, call.sendResult)
    })
    return new Map([...(await hostWebMcpTools(this.#recorded)), ...own])
  }

  open(): void {
    this.#wantsOpen = true
    if (!this.state.isReady || this.state.isOpen) return
    this.#setOpen(true)
    if (this.#container === undefined) this.#channel.post({ type: 'focus' })
    this.#tell('opened', undefined, this.#options.onOpen)
  }

  /** In a container of the page there is nothing to close. */
  close(): void {
    this.#wantsOpen = false
    if (!this.state.isOpen || this.#container !== undefined) return
    this.#setOpen(false)
    this.#tell('closed', undefined, this.#options.onClose)
  }

  toggle(): void {
    if (this.state.isReady ? this.state.isOpen : this.#wantsOpen) this.close()
    else this.open()
  }

  #setOpen(isOpen: boolean): void {
    this.#shell.setOpen(isOpen, this.#container === undefined)
    this.#change({ isOpen })
    this.#channel.post({ type: 'visibility', isOpen })
  }

  /** What is passed replaces what was; undefined takes an option back. */
  configure(changes: GivenOptions): void {
    const [before, placeBefore] = [this.#options, this.#place]
    this.#given = { ...this.#given, ...changes }
    this.#options = readAll(this.#given, Object.keys(changes))
    if (this.#place === placeBefore) this.#update(before)
    else this.#rebuild()
  }

  #update(before: ReadOptions): void {
    this.#shell.paint(this.#options)
    const options = toFrameOptions(this.#options)
    if (JSON.stringify(options) !== JSON.stringify(toFrameOptions(before))) {
      this.#channel.post({ type: 'configure', options })
    }
    if (this.#options.context !== before.context) this.#postContext()
    if (this.#options.tools !== before.tools) this.#tools.announceTools()
  }

  #rebuild(): void {
    this.#wantsOpen = this.state.isOpen
    this.#remove()
    ;[this.#shell, this.#channel] = this.#build()
  }

  setContext(context: Readonly<Record<string, unknown>>): void {
    this.configure({ context })
  }

  /** Takes it off the page; another one can be mounted afterwards. */
  destroy(): void {
    const page = sharedPage()
    if (page.widget !== this) return
    page.widget = undefined
    this.#recorded.listeners.delete(this.#tools.announceTools)
    this.#remove()
  }
}

/**
 * Puts a widget on the page. Undefined, and `onError` says why, where there is one already or where it should stand is not there.
 * `scriptUrl` is where the code came from.
 */
export function mountWidget(given: GivenOptions, scriptUrl?: string): Widget | undefined {
  const page = sharedPage()
  if (page.widget !== undefined) {
    reportFailure(given, 'already_mounted', 'There is a widget on this page already; only one is possible.')
    return undefined
  }
  const options = readAll(given, Object.keys(given))
  if (options.containerId !== undefined && findContainer(options.containerId) === undefined) {
    reportFailure(given, 'container_not_found', `There is no element with the id ${options.containerId}.`)
    return undefined
  }
  page.widget = new Widget(given, options, scriptUrl)
  announceChange()
  return page.widget
}

function findContainer(id: string | undefined): Element | undefined {
  return id === undefined ? undefined : (document.getElementById(id) ?? undefined)
}

/** The options; those of `names` that cannot be used are told. */
function readAll(given: GivenOptions, names: readonly string[]): ReadOptions {
  return readOptions(given, (name) => {
    if (!names.includes(name)) return
    reportFailure(
      given,
      'invalid_option',
      `The option ${name} has a value that cannot be used; its default is.`,
    )
  })
}

function reportFailure({ onError }: GivenOptions, code: WidgetError['code'], message: string): void {
  const error = new WidgetError(code, message)
  if (isMistake(code)) warn(message)
  dispatch('error', error)
  if (typeof onError === 'function') callPage(() => onError(error))
}

/** Whether the developer of the page has to change something in it. */
function isMistake(code: WidgetError['code']): boolean {
  return ['already_mounted', 'container_not_found', 'invalid_option', 'frame_unreachable'].includes(code)
}
