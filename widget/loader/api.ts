/** `ParleyChat`: what a page can do with the widget. Decision: 11. */

import { say } from '../host/developer-log.ts'
import { sharedPage } from '../host/page.ts'
import type { GivenOptions } from '../host/read-options.ts'
import { mountWidget } from '../host/widget.ts'
import type { ParleyChat } from './public-api.ts'
import { createReadiness } from './readiness.ts'
import { whenParsed, whenQuiet } from './when-ready.ts'

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
  function call(name: 'open' | 'close' | 'toggle'): void {
    mountIfWaiting()
    whenParsed(() => {
      if (page.widget === undefined) say('warn', `${name}: no widget`)
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
    setContext: (context) => api.configure({ context }),
    destroy() {
      configured = {}
      isWaiting = false
      asked = undefined
      page.widget?.destroy()
    },
    get ready() {
      return readiness()
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
  const readiness = createReadiness(api)
  return {
    api,
    autoMount() {
      isWaiting = page.widget === undefined
      whenQuiet(mountIfWaiting)
    },
  }
}
