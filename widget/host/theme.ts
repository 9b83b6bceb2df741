/** Finds the agent's theme, which the server sends with the loader or in a small script. */
import type { Appearance } from '../appearance.ts'
import { publicPartOf } from '../values.ts'
import { shared } from './page.ts'
import { type ReadOptions, themeAddressOf } from './read-options.ts'

type Themes = Record<string, (Appearance & { readonly theme?: 'light' | 'dark' | 'auto' }) | undefined>

/** The scripts of the server write themes here, by the public part of the agent key. */
const themes = (): Themes => shared('agents', () => ({}))

export function findTheme({ apiKey }: Pick<ReadOptions, 'apiKey'>): Themes[string] {
  return themes()[publicPartOf(apiKey)]
}

/** Loads the theme unless the loader has brought it. A failure leaves the defaults. */
export async function loadTheme(
  options: ReadOptions,
  scriptUrl: string | undefined,
  importScript: (url: string) => Promise<unknown>,
): Promise<void> {
  if (publicPartOf(options.apiKey) === '' || findTheme(options) !== undefined) return
  try {
    await importScript(themeAddressOf(options, scriptUrl))
  } catch {
    // The frame reports a server that does not respond.
  }
}
