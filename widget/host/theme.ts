/** Finds the agent's theme, which the server sends with the loader or in a small script. */
import type { Appearance } from '../appearance.ts'
import { publicPartOf } from '../values.ts'
import { frameAddressOf, serverOf } from './address.ts'
import { shared } from './page.ts'
import type { ReadOptions } from './read-options.ts'

type Themes = Record<string, (Appearance & { readonly theme?: 'light' | 'dark' | 'auto' }) | undefined>

/** The server's scripts write the agents' themes here, by the public part of the agent key. */
const themes = (): Themes => shared('agents', () => ({}))

/** Returns the options, with values from the agent's theme for those that the page has not set. */
export function withTheme(options: ReadOptions): ReadOptions {
  return { ...themes()[publicPartOf(options.apiKey)], ...options }
}

/**
 * Loads the theme from the frame's server, unless that server also delivered the loader with the theme.
 * Rejects if the server does not respond or does not let the page show the frame.
 */
export async function loadTheme(
  options: ReadOptions,
  scriptUrl: string | undefined,
  importScript: (url: string) => Promise<unknown>,
): Promise<void> {
  const isKnown = publicPartOf(options.apiKey) in themes()
  if (isKnown && serverOf(options, scriptUrl) === serverOf({}, scriptUrl)) return
  await importScript(frameAddressOf(options, scriptUrl, '.js'))
}
