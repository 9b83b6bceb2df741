/** Starts `/embed/parley.js`: installs `ParleyChat` and mounts the widget. */

import { dom } from '../host/dom.ts'
import type { Extras } from '../host/extras.ts'
import { shared } from '../host/page.ts'
import type { GivenOptions } from '../host/read-options.ts'
import { recordWebMcp } from '../host/webmcp.ts'
import type { CreatedApi, ParleyChat } from './api.ts'
import { createApi } from './api.ts'
import type { QueuedCall } from './index.ts'

const script = findScript()
recordWebMcp()
const parts = {
  scriptUrl: script?.src,
  importScript,
  // If the server was updated after the page had loaded, this version's file no longer exists.
  loadExtras: () => importExtras(EXTRAS_FILE).catch(() => importExtras('extras.js')) as Promise<Extras>,
}
shared('api', () => installApi(createApi(parts, readAttributes(script))))

/** Imports from the server that has delivered this script. */
function importExtras(file: string): Promise<unknown> {
  return importScript(new URL(file, script?.src ?? location.href).href)
}

function importScript(url: string): Promise<unknown> {
  return import(/* @vite-ignore */ url)
}

/** Name of the second script; the build sets it. */
declare const EXTRAS_FILE: string

/** Runs once per page; a second copy of the script has no effect. */
function installApi({ api, autoMount }: CreatedApi): ParleyChat {
  // Undefined if `window.ParleyChat` is not the page's queue, but an element with the id `ParleyChat`.
  const queue: unknown = window.ParleyChat?.q
  const call = ([name, ...given]: QueuedCall) => {
    const methods = api as unknown as Readonly<Record<string, (...given: never[]) => unknown>>
    // `ready` is a promise, not a method.
    if (name === 'ready') void api.ready.then(...(given as unknown as [() => void]))
    else methods[name]?.(...given)
  }
  window.ParleyChat = Object.assign(api, { q: { push: call } })
  autoMount()
  if (Array.isArray(queue)) queue.forEach(call)
  return api
}

/** Returns the running script tag. Modules have no `currentScript`, so their tag is found by its address. */
function findScript(): HTMLScriptElement | null {
  return (dom.currentScript ?? dom.querySelector('script[src*="/embed/parley"]')) as HTMLScriptElement | null
}

/**
 * Reads options from attributes, such as `primaryColor` from `data-primary-color`. Lists and objects are not
 * supported.
 */
function readAttributes(script: HTMLScriptElement | null): GivenOptions {
  const { defaultUi: defaultUI, ...options } = { ...script?.dataset }
  return { ...options, defaultUI } as unknown as GivenOptions
}
