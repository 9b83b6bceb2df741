/** When something of a page can begin. */

/** Longest wait for a quiet moment after the page has loaded. */
const QUIET_WITHIN_MS = 1_000

/** Once the page's elements are there; at once if they are. */
export function whenParsed(run: () => void): void {
  if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', run, { once: true })
  else run()
}

/** Once the page has loaded and has nothing to do: what it shows itself comes first. */
export function whenQuiet(run: () => void): void {
  const wait = () => {
    // Safari has no such moments.
    if (typeof requestIdleCallback !== 'function') setTimeout(run)
    else requestIdleCallback(run, { timeout: QUIET_WITHIN_MS })
  }
  if (document.readyState === 'complete') wait()
  else window.addEventListener('load', wait, { once: true })
}
