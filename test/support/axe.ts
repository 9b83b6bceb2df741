/** Checks pages for accessibility violations with axe (WCAG 2.2 AA and best practices). */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const source = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Lists the violations on the page or in the frame, each with its rule, element and summary. */
export async function listAxeFaults(page: Pick<Page, 'evaluate'>): Promise<string[]> {
  await waitForTransitions(page)
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

/** Waits until all transitions have ended, because colors have intermediate values until then. */
export async function waitForTransitions(page: Pick<Page, 'evaluate'>): Promise<void> {
  await page.evaluate(async () => {
    const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
    // The timeout is for iframes that are scrolled out of view: browsers do not call this callback in them.
    const nextFrame = () =>
      Promise.race([new Promise((resolve) => requestAnimationFrame(resolve)), pause(200)])
    // The number of rounds is limited, because a reply that is being streamed always starts new transitions.
    for (let round = 0; round < 5; round++) {
      // A component may start its transition in the second frame after a change.
      for (let count = 0; count < 2; count++) await nextFrame()
      const transitions = document.getAnimations().filter((one) => {
        const target = one instanceof CSSTransition && (one.effect as KeyframeEffect | null)?.target
        // Browsers pause the transitions of elements that `content-visibility` skips.
        return target instanceof Element && target.checkVisibility({ contentVisibilityAuto: true })
      })
      if (transitions.length === 0) return
      await Promise.race([Promise.allSettled(transitions.map((one) => one.finished)), pause(5000)])
    }
  })
}

interface AxeCore {
  run(
    root: Document,
    options: object,
  ): Promise<{ violations: { id: string; nodes: { target: string[]; failureSummary: string }[] }[] }>
}
