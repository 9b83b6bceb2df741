/** Checks pages for accessibility violations with axe (WCAG 2.2 AA and best practices). */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const source = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Lists the violations on the page or in the frame, each with its rule, element and summary. */
export async function listAxeFaults(page: Pick<Page, 'evaluate'>): Promise<string[]> {
  // The page's CSP blocks script elements but does not apply to `evaluate`.
  await page.evaluate(source)
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: AxeCore }
    const { violations } = await axe.run(document, { resultTypes: ['violations'] })
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id}: ${target.join(' ')}: ${failureSummary}`),
    )
  })
}

interface AxeCore {
  run(
    root: Document,
    options: object,
  ): Promise<{ violations: { id: string; nodes: { target: string[]; failureSummary: string }[] }[] }>
}
