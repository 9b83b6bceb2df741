/** The script of `/embed/parley.js`: `ParleyChat` for the page, and the widget on it. */

import type { GivenOptions } from '../host/read-options.ts'
import { recordWebMcp } from '../host/tools/webmcp.ts'
import type { CreatedApi, ParleyChat } from './api.ts'
import { createApi } from './api.ts'

const script = findScript()
recordWebMcp()
installApi(createApi(script?.src, readAttributes(script)))

/** A call that came before the script: a method's name and what it is called with. */
type QueuedCall = readonly [name: string, ...given: never[]]

declare global {
  interface Window {
    ParleyChatConfig?: GivenOptions
    ParleyChat?: Partial<ParleyChat> & { q?: { push(call: QueuedCall): unknown } }
  }
}

/** A second script on the page changes nothing. */
function installApi({ api, autoMount }: CreatedApi): void {
  const queue = window.ParleyChat?.q
  // A list is the page's; what is none was put there by a first script.
  if (queue !== undefined && !Array.isArray(queue)) return
  const call = ([name, ...given]: QueuedCall) => {
    const methods = api as unknown as Readonly<Record<string, (...given: never[]) => unknown>>
    // The promise is not called but waited for.
    if (name === 'ready') void api.ready.then(...(given as unknown as [() => void]))
    else methods[name]?.(...given)
  }
  window.ParleyChat = Object.assign(api, { q: { push: call } })
  autoMount()
  queue?.forEach(call)
}

/** The tag that is running; for a module there is none, so the one that looks like it. */
function findScript(): HTMLScriptElement | null {
  const { currentScript } = document
  return (currentScript ?? document.querySelector('script[src*="/embed/parley"]')) as HTMLScriptElement | null
}

/** Options by their names with hyphens: `data-primary-color` is `primaryColor`. Lists and records are not for attributes. */
function readAttributes(script: HTMLScriptElement | null): GivenOptions {
  const { defaultUi: defaultUI, ...options } = { ...script?.dataset }
  return { ...options, defaultUI } as unknown as GivenOptions
}
