/** `ParleyChat`: what a page can do with the widget. */
import { dom } from '../host/dom.ts'
import { log } from '../host/events.ts'
import { sharedPage } from '../host/page.ts'
import type { GivenOptions } from '../host/read-options.ts'
import { mountWidget } from '../host/widget.ts'

/** The page's object, and what the script does with it by itself. */
export interface CreatedApi {
  readonly api: ParleyChat
  /** Mounts when the page has loaded and is quiet, unless the page does it or says not to. */
  readonly autoMount: () => void
}

/** Reads `ParleyChatConfig` anew for each mount. */
export function createApi(scriptUrl: string | undefined, attributes: GivenOptions): CreatedApi {
  const page = sharedPage()
  let configured: GivenOptions = {}
  let isWaiting = false
  let asked: GivenOptions | undefined
  const gather = (): GivenOptions => ({ ...attributes, ...window.ParleyChatConfig, ...configured })

  /** What the page asks for is done as soon as it can be, not when the page is quiet. */
  function call(name: 'open' | 'close' | 'toggle' | 'logout'): void {
    mountIfWaiting()
    whenParsed(() => {
      if (page.widget === undefined) log('warn', `${name}: no widget`)
      else page.widget[name]()
    })
  }

  function mountIfWaiting(): void {
    // An attribute says it in letters.
    if (isWaiting && `${gather().autoMount}` !== 'false') api.mount()
  }

  const api: ParleyChat = {
    mount(options = {}) {
      isWaiting = false
      asked = options
      whenParsed(() => {
        if (asked !== undefined) mountWidget({ ...gather(), ...asked }, scriptUrl)
        asked = undefined
      })
    },
    configure(options) {
      configured = { ...configured, ...options }
      page.widget?.configure(options)
    },
    open: () => call('open'),
    close: () => call('close'),
    toggle: () => call('toggle'),
    logout() {
      api.configure({ user: undefined })
      call('logout')
    },
    setContext: (context) => api.configure({ context }),
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
      return page.widget?.state.isOpen === true
    },
    get hasUnread() {
      return page.widget?.state.hasUnread === true
    },
    get iframe() {
      return page.widget?.iframe ?? null
    },
  }
  return {
    api,
    autoMount() {
      isWaiting = page.widget === undefined
      whenQuiet(mountIfWaiting)
    },
  }
}

export interface ParleyChat {
  /** Over `ParleyChatConfig` and the attributes of the script's tag. */
  mount(options?: GivenOptions): void
  /** Changes what is passed, at run time; also before `mount`. */
  configure(options: GivenOptions): void
  open(): void
  close(): void
  toggle(): void
  /** Another object replaces the context; the same one changed does not. */
  setContext(context: Readonly<Record<string, unknown>>): void
  /** Forgets `user` and deletes the conversations with this agent that this browser has stored. */
  logout(): void
  /** Takes the widget off the page; `mount` puts another one there. */
  destroy(): void
  /** Resolves once the widget is there; after `destroy` it is that of the next one. */
  readonly ready: Promise<ParleyChat>
  readonly isOpen: boolean
  readonly hasUnread: boolean
  readonly iframe: HTMLIFrameElement | null
}

/** Resolves once the current widget, or the next one, is ready. */
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

/** Once the page's elements are there; at once if they are. */
function whenParsed(run: () => void): void {
  if (dom.readyState === 'loading') dom.addEventListener('DOMContentLoaded', run)
  else run()
}

/** Once the page has loaded and has nothing to do: what it shows itself comes first. */
function whenQuiet(run: () => void): void {
  const wait = () => setTimeout(run)
  if (dom.readyState === 'complete') wait()
  else window.addEventListener('load', wait)
}
