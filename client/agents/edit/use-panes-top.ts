/** Measures how far the editor's panes start from the top of the page, so that the chat fits in the window. */

import { useLayoutEffect, useRef } from 'react'

/**
 * Returns the ref of an element. Stores the element's distance from the top of the page in its CSS variable
 * `--panes-top`, now and whenever the page's size changes, for example because a notice appears above it.
 */
export function usePanesTop() {
  const ref = useRef<HTMLDivElement>(null)
  // Measures before the first paint, so that the panes do not move.
  useLayoutEffect(() => {
    const measure = () => {
      const top = (ref.current?.getBoundingClientRect().top ?? 0) + window.scrollY
      ref.current?.style.setProperty('--panes-top', `${Math.round(top)}px`)
    }
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(document.body)
    return () => observer.disconnect()
  }, [])
  return ref
}
