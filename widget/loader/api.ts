/** `ParleyChat`: what a page can do with the widget. Decision: 11. */
import { listenForChanges, sharedPage } from '../host/page.ts'
import type { GivenOptions } from '../host/read-options.ts'
import { warn } from '../host/say.ts'
import { mountWidget, type Widget } from '../host/widget.ts'
import { whenParsed, whenQuiet } from './moments.ts'

/** A promise that can also be called, with what is to be done then. */
export type Ready = Promise<ParleyChat> & ((callback?: (chat: ParleyChat) => void) => Promise<ParleyChat>)

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
  /** Takes the widget off the page; `mount` puts another one there. */
  destroy(): void
  /** Resolves once the widget is there; after `destroy` it is that of the next one. */
  readonly ready: Ready
  readonly isOpen: boolean
  readonly hasUnread: boolean
  readonly iframe: HTMLIFrameElement | null
}

/** The page's object, and what the script does with it by itself. */
export interface CreatedApi {
  readonly api: ParleyChat
  /** Mounts when the page has loaded and is quiet, unless the page does it or says not to. */
  readonly autoMount: () => void
}

/** Reads `ParleyChatConfig` anew for each mount. */
export function createApi(scriptUrl: string | undefined, attributes: GivenOptions): CreatedApi {
  let configured: GivenOptions = {}
  let pending: 'automatic' | 'asked' | undefined
  let afterMount: ((widget: Widget) => void)[] = []
  const readiness = createReadiness(() => api)
  const gather = (): GivenOptions => ({ ...attributes, ...window.ParleyChatConfig, ...configured })

  function mountNow(options: GivenOptions): void {
    pending = undefined
    const mounted = mountWidget({ ...gather(), ...options }, scriptUrl)
    const calls = afterMount
    afterMount = []
    if (mounted !== undefined) for (const call of calls) call(mounted)
  }

  function withWidget(name: string, run: (widget: Widget) => void): void {
    const { widget } = sharedPage()
    if (widget !== undefined) run(widget)
    else if (pending === undefined) warn(`${name}() does nothing: there is no widget on the page.`)
    else {
      afterMount.push(run)
      if (pending === 'automatic') api.mount()
    }
  }

  const api: ParleyChat = {
    mount(options = {}) {
      pending = 'asked'
      whenParsed(() => {
        if (pending === 'asked') mountNow(options)
      })
    },
    configure(options) {
      configured = { ...configured, ...options }
      sharedPage().widget?.configure(options)
    },
    open: () => withWidget('open', (widget) => widget.open()),
    close: () => withWidget('close', (widget) => widget.close()),
    toggle: () => withWidget('toggle', (widget) => widget.toggle()),
    setContext: (context) => api.configure({ context }),
    destroy() {
      configured = {}
      pending = undefined
      afterMount = []
      sharedPage().widget?.destroy()
    },
    get ready() {
      return readiness()
    },
    get isOpen() {
      return sharedPage().widget?.state.isOpen ?? false
    },
    get hasUnread() {
      return sharedPage().widget?.state.hasUnread ?? false
    },
    get iframe() {
      return sharedPage().widget?.iframe ?? null
    },
  }
  return {
    api,
    autoMount() {
      pending ??= 'automatic'
      whenQuiet(() => {
        if (pending !== 'automatic') return
        pending = undefined
        const isWanted = ![false, 'false'].includes(gather().autoMount as boolean | string)
        if (isWanted && sharedPage().widget === undefined) mountNow({})
      })
    },
  }
}

/** Answers the readiness of the widget there is, or of the next one. */
function createReadiness(api: () => ParleyChat): () => Ready {
  let current: { ready: Ready; isSettled: boolean; resolve: () => void } | undefined
  const isReady = () => sharedPage().widget?.state.isReady === true

  function begin(): NonNullable<typeof current> {
    let resolve = () => {}
    const promise = new Promise<ParleyChat>((fulfil) => {
      resolve = () => fulfil(api())
    })
    const call = (callback?: (chat: ParleyChat) => void) =>
      promise.then((chat) => {
        callback?.(chat)
        return chat
      })
    const methods = {
      // biome-ignore lint/suspicious/noThenProperty: it is a promise.
      then: promise.then.bind(promise),
      catch: promise.catch.bind(promise),
      finally: promise.finally.bind(promise),
    }
    return { ready: Object.assign(call, methods) as unknown as Ready, isSettled: false, resolve }
  }

  function settle(): void {
    if (current?.isSettled === true && sharedPage().widget === undefined) current = undefined
    if (current === undefined || current.isSettled || !isReady()) return
    current.isSettled = true
    current.resolve()
  }

  listenForChanges(settle)
  return () => {
    current ??= begin()
    settle()
    return current?.ready as Ready
  }
}
