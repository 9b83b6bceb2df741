/** Makes `ParleyChat` the page's, and does what the page had asked for before. */
import type { GivenOptions } from '../host/read-options.ts'
import type { CreatedApi } from './api.ts'
import type { ParleyChat } from './public-api.ts'

/** A call that came before the script: a method's name and what it is called with. */
type QueuedCall = readonly [name: string, ...given: never[]]

declare global {
  interface Window {
    ParleyChatConfig?: GivenOptions
    ParleyChat?: Partial<ParleyChat> & { q?: { push(call: QueuedCall): unknown } }
  }
}

/** A second script on the page changes nothing. */
export function installApi({ api, autoMount }: CreatedApi): void {
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
