/** The types of widget-sources.mjs, which is plain JavaScript because the set-up uses it before TypeScript can run. */
export const builtFolder: string
export function digestSources(root: string): string | undefined
export function isWidgetBuilt(root: string): boolean
