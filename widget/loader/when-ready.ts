/** When something of a page can begin. */

/** Once the page's elements are there; at once if they are. */
export function whenParsed(run: () => void): void {
  if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', run)
  else run()
}

/** Once the page has loaded and has nothing to do: what it shows itself comes first. */
export function whenQuiet(run: () => void): void {
  // Safari has no such moments.
  const wait = () => (window.requestIdleCallback ?? setTimeout)(run)
  if (document.readyState === 'complete') wait()
  else window.addEventListener('load', wait)
}
