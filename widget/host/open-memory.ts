/** Remembers in the tab whether the window is open, so that the next page shows it again. */

const NAME = 'parley-open'

/** `expanded` is the side panel; `closed` means that the visitor has closed the window. */
export type OpenMemory = 'open' | 'expanded' | 'closed'

/**
 * Returns undefined if the window has not been opened or closed in this tab, or if the browser blocks
 * storage.
 */
export function recallOpen(): OpenMemory | undefined {
  try {
    return (sessionStorage.getItem(NAME) ?? undefined) as OpenMemory | undefined
  } catch {
    return undefined
  }
}

export function rememberOpen(memory: OpenMemory): void {
  try {
    sessionStorage.setItem(NAME, memory)
  } catch {
    // Without storage, the next page shows the launcher.
  }
}
