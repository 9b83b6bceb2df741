/** The tag that this script came from, and the options in its `data-` attributes. */
import type { GivenOptions } from '../host/read-options.ts'

/** The tag that is running; for a module there is none, so the one that looks like it. */
export function findScript(): HTMLScriptElement | null {
  const { currentScript } = document
  return (currentScript ?? document.querySelector('script[src*="/embed/parley"]')) as HTMLScriptElement | null
}

/** Options by their names with hyphens: `data-primary-color` is `primaryColor`. Lists and records are not for attributes. */
export function readAttributes(script: HTMLScriptElement | null): GivenOptions {
  const { defaultUi: defaultUI, ...options } = { ...script?.dataset }
  return { ...options, defaultUI } as unknown as GivenOptions
}
