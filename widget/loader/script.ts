/** The tag that this script came from, and the options in its `data-` attributes. */
import type { GivenOptions } from '../host/read-options.ts'

/** The tag that is running; for a module there is none, so the one that looks like it. */
export function findScript(): HTMLScriptElement | undefined {
  const { currentScript } = document
  if (currentScript instanceof HTMLScriptElement && currentScript.src !== '') return currentScript
  return document.querySelector<HTMLScriptElement>('script[src*="/embed/parley"]') ?? undefined
}

/** Options by their names with hyphens: `data-primary-color` is `primaryColor`. Lists and records are not for attributes. */
export function readAttributes(script: HTMLScriptElement | undefined): GivenOptions {
  const { defaultUi: defaultUI, ...options } = { ...script?.dataset }
  return { ...options, defaultUI } as unknown as GivenOptions
}
