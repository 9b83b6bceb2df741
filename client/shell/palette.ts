/** Holds the state of the command palette, which the sidebar can open. */
import { createSpotlight } from '@mantine/spotlight'

export const [paletteStore, palette] = createSpotlight()
