/**
 * Holds the state of the command palette and the list of shortcuts, which other parts of the page can open.
 */
import { createSpotlight } from '@mantine/spotlight'

const [paletteStore, spotlight] = createSpotlight()

export { paletteStore }

let openShortcuts = () => {}

/** Sets the function that opens the list of shortcuts; the palette loads later than the page. */
export function provideShortcuts(open: () => void): void {
  openShortcuts = open
}

export const palette = { ...spotlight, showShortcuts: () => openShortcuts() }
