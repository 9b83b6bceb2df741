/**
 * Holds the state of the command palette and the list of shortcuts, which other parts of the page can open,
 * even before the palette's script has loaded.
 */
import { useHotkeys } from '@mantine/hooks'
import { createSpotlight } from '@mantine/spotlight'

const [paletteStore, spotlight] = createSpotlight()

export { paletteStore }

let areShortcutsWanted = false
let openShortcuts = () => {
  areShortcutsWanted = true
}

/** Sets the function that opens the list of shortcuts; the palette loads later than the page. */
export function provideShortcuts(open: () => void): void {
  openShortcuts = open
  if (areShortcutsWanted) open()
  areShortcutsWanted = false
}

export const palette = { ...spotlight, showShortcuts: () => openShortcuts() }

/** Handles the keyboard shortcuts that work on every page. */
export function usePageShortcuts(): void {
  useHotkeys([['mod+K', palette.toggle]], [], true)
  useHotkeys([
    ['/', focusSearch],
    ['shift+?', palette.showShortcuts],
    ['?', palette.showShortcuts],
  ])
}

/** Focuses the page's search field; opens the palette on pages without one. */
function focusSearch(): void {
  const field = document.querySelector<HTMLInputElement>('main [data-search] input, main input[data-search]')
  if (field === null) palette.open()
  else field.focus()
}
