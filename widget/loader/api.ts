/** Creates `ParleyChat`, the API that a host page uses to control the widget. */
import { dom } from '../host/dom.ts'
import { listen, log, type WidgetEvents } from '../host/events.ts'
import { type SentType, sharedPage, type Widget } from '../host/page.ts'
import type { GivenOptions } from '../host/read-options.ts'
import { mountWidget, type WidgetParts } from '../host/widget.ts'

/** The page's API, and the function that mounts the widget automatically. */
export interface CreatedApi {
  readonly api: ParleyChat
  /**
   * Mounts when the page has loaded and is idle, unless the page mounts the widget itself or disables this.
   */
  readonly autoMount: () => void
}

/** Creates the API, which reads `ParleyChatConfig` again for each mount. */
export function createApi(parts: WidgetParts, attributes: GivenOptions): CreatedApi {
  const page = sharedPage()
  let configured: GivenOptions = {}
  let isWaiting = false
  let asked: GivenOptions | undefined
  const gather = (): GivenOptions => ({ ...attributes, ...window.ParleyChatConfig, ...configured })

  /** Mounts immediately if needed, instead of waiting until the page is idle. */
  function call(act: (widget: Widget) => void): void {
    mountIfWaiting()
    whenParsed(() => {
      if (page.widget) act(page.widget)
      else log('warn', 'not mounted')
    })
  }

  const send = (type: SentType, text?: string) => call((widget) => widget.send(type, text))

  function mountIfWaiting(): void {
    // An attribute contains the text `false`, not a boolean.
    if (isWaiting && `${gather().autoMount}` !== 'false') api.mount()
  }

  const api: ParleyChat = {
    mount(options = {}) {
      isWaiting = false
      asked = options
      whenParsed(() => {
        if (asked) mountWidget({ ...gather(), ...asked }, parts)
        asked = undefined
      })
    },
    configure(options) {
      configured = { ...configured, ...options }
      page.widget?.configure(options)
    },
    open: () => call((widget) => widget.open()),
    close: () => call((widget) => widget.close()),
    toggle: () => call((widget) => widget.toggle()),
    logout() {
      api.setUser()
      send('logout')
    },
    newConversation: () => send('newConversation'),
    sendMessage: (text) => send('send', `${text}`),
    prefill: (text) => send('prefill', `${text}`),
    setUser: (user) => api.configure({ user }),
    setVisitor: (visitorToken) => api.configure({ visitorToken }),
    resetVisitor() {
      api.setVisitor()
      send('resetVisitor')
    },
    setContext: (context) => api.configure({ context }),
    on: listen,
    destroy() {
      configured = {}
      isWaiting = false
      asked = undefined
      page.widget?.destroy()
    },
    get ready() {
      return waitUntilReady(api)
    },
    get isOpen() {
      return !!page.widget?.state.isOpen
    },
    get hasUnread() {
      return !!page.widget?.state.hasUnread
    },
    get unreadCount() {
      return page.widget?.state.unreadCount ?? 0
    },
    get iframe() {
      return page.widget?.iframe ?? null
    },
  }
  return {
    api,
    autoMount() {
      isWaiting = !page.widget
      whenQuiet(mountIfWaiting)
    },
  }
}

export interface ParleyChat {
  /** Mounts the widget. `options` override `ParleyChatConfig` and the script tag's attributes. */
  mount(options?: GivenOptions): void
  /** Changes the given options; may be called before `mount`. */
  configure(options: GivenOptions): void
  open(): void
  close(): void
  toggle(): void
  /**
   * Opens the window and sends a message on the visitor's behalf; puts it into the input instead while an
   * answer is being written.
   */
  sendMessage(text: string): void
  /** Opens the window and puts text into the input, which the visitor can change and send. */
  prefill(text: string): void
  /** Shows the conversation of another signed-in user; undefined for a visitor who is not signed in. */
  setUser(user?: string): void
  /** Shows the conversations of the user whom the JWT identifies; another user's are removed from the screen first. */
  setVisitor(token?: string): void
  /**
   * Removes the identified user's conversation and token. Continues as the user whom `getVisitorToken` returns, or as
   * an anonymous visitor if the page does not have it.
   */
  resetVisitor(): void
  /** Calls the listener for each event; returns a function that removes it. */
  on<Name extends keyof WidgetEvents>(name: Name, listener: (detail: WidgetEvents[Name]) => void): () => void
  /** Replaces the context. Pass a new object, because changes to the same object are not detected. */
  setContext(context: Readonly<Record<string, unknown>>): void
  /** Shows an empty conversation. */
  newConversation(): void
  /** Forgets `user`, and deletes the conversations with this agent that this browser has stored. */
  logout(): void
  /** Removes the widget; `mount` can create another one. */
  destroy(): void
  /** Resolves when the widget is ready; after `destroy`, a new promise waits for the next widget. */
  readonly ready: Promise<ParleyChat>
  readonly isOpen: boolean
  readonly hasUnread: boolean
  /** Number of answers and messages from people that arrived while the window was closed. */
  readonly unreadCount: number
  readonly iframe: HTMLIFrameElement | null
}

/** Resolves when the current widget, or the next one, is ready. */
function waitUntilReady(api: ParleyChat): Promise<ParleyChat> {
  const { listeners } = sharedPage()
  return new Promise((resolve) => {
    const settle = () => {
      if (sharedPage().widget?.state.isReady && listeners.delete(settle)) resolve(api)
    }
    listeners.add(settle)
    settle()
  })
}

/** Runs when the document has been parsed, or immediately if it already has. */
function whenParsed(run: () => void): void {
  if (dom.readyState === 'loading') dom.addEventListener('DOMContentLoaded', run)
  else run()
}

/** Runs when the page has loaded and is idle, so that the page's content loads first. */
function whenQuiet(run: () => void): void {
  const wait = () => setTimeout(run)
  if (dom.readyState === 'complete') wait()
  else addEventListener('load', wait)
}
