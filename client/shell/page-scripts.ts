/** Loads the scripts of the console's pages on demand, and all of them when the browser is idle. */
import { type AnyRouter, type AsyncRouteComponent, lazyRouteComponent } from '@tanstack/react-router'

/** Defines a page with a separate script. While the browser is offline, waits for the connection. */
export function lazyPage<T extends Record<string, unknown>, Name extends keyof T>(
  load: () => Promise<T>,
  name: Name,
) {
  return lazyRouteComponent(
    () =>
      load().catch(async (thrown) => {
        if (navigator.onLine) throw thrown
        await untilOnline()
        return load()
      }),
    name,
  )
}

/**
 * Loads the script of each page, one after another, so that navigation works while the browser is offline.
 */
export async function prefetchPages(router: AnyRouter): Promise<void> {
  const { connection } = navigator as Navigator & { connection?: { saveData?: boolean } }
  if (connection?.saveData === true) return
  if (document.readyState !== 'complete')
    await new Promise((resolve) => window.addEventListener('load', resolve, { once: true }))
  for (const { options } of Object.values(router.routesById)) {
    await untilIdle()
    await (options.component as AsyncRouteComponent<unknown> | undefined)?.preload?.()
  }
}

function untilOnline(): Promise<unknown> {
  return new Promise((resolve) => window.addEventListener('online', resolve, { once: true }))
}

/** Waits until the browser is idle; in Safari, which cannot report this, waits 200 ms. */
function untilIdle(): Promise<unknown> {
  return new Promise((resolve) =>
    'requestIdleCallback' in window ? requestIdleCallback(resolve) : setTimeout(resolve, 200),
  )
}
