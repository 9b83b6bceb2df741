/** The tag that this script came from, and the options in its `data-` attributes. */
import { attributeNames, type GivenOptions } from '../host/read-options.ts'

/** The tag that is running; for a module there is none, so the one that looks like it. */
export function findScript(): HTMLScriptElement | undefined {
  const { currentScript } = document
  if (currentScript instanceof HTMLScriptElement && currentScript.src !== '') return currentScript
  return document.querySelector<HTMLScriptElement>('script[src*="/embed/parley"]') ?? undefined
}

/** Options by their names with hyphens: `data-primary-color` is `primaryColor`. Lists and records are not for attributes. */
export function readAttributes(script: HTMLScriptElement | undefined): GivenOptions {
  const found = attributeNames.flatMap((name) => {
    const attribute = `data-${name.replaceAll(/[A-Z]+/g, (letters) => `-${letters.toLowerCase()}`)}`
    const value = script?.getAttribute(attribute)
    return value === null || value === undefined ? [] : [[name, value] as const]
  })
  return Object.fromEntries(found)
}
