/** The types of web-sources.mjs, which is plain JavaScript because the set-up uses it before TypeScript can run. */
export interface WebBuild {
  readonly source: string
  readonly script: string
  readonly target: string
  readonly others: readonly string[]
}
export const webBuilds: Readonly<Record<'widget' | 'console', WebBuild>>
export function digestSources(root: string, build: WebBuild): string | undefined
export function listStaleBuilds(root: string): WebBuild[]
