/** Makes `ParleyChat` the page's, and does what the page had asked for before. */
import type { GivenOptions } from '../host/read-options.ts'
import type { CreatedApi, ParleyChat } from './api.ts'

/** A call that came before the script: a method's name and what it is called with. */
type QueuedCall = readonly [name: string, ...given: unknown[]]

declare global {
  interface Window {
    ParleyChatConfig?: GivenOptions
    ParleyChat?: Partial<ParleyChat> & { q?: { push(call: QueuedCall): unknown } }
  }
}

const installed = Symbol.for('parley.installed')

/** A second script on the page changes nothing. */
export function installApi({ api, autoMount }: CreatedApi): void {
  const before = window.ParleyChat
  if (before !== undefined && installed in before) return
  const call = ([name, ...given]: QueuedCall) => {
    const method: unknown = api[name as keyof ParleyChat]
    if (typeof method === 'function') method(...given)
  }
  window.ParleyChat = Object.defineProperties(api, {
    q: { value: { push: call } },
    [installed]: { value: true },
  })
  autoMount()
  if (Array.isArray(before?.q)) for (const queued of before.q as QueuedCall[]) call(queued)
}
