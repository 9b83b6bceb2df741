/** Escape closes the dialog on top alone: what was typed into one below it stays. */
import { useEffect, useRef } from 'react'

/** How each open dialog is closed, the one on top last. */
const open: (() => void)[] = []

export function useEscape(isOpen: boolean, onEscape: () => void): void {
  const latest = useRef(onEscape)
  latest.current = onEscape
  useEffect(() => {
    if (!isOpen) return
    const close = () => latest.current()
    open.push(close)
    if (open.length === 1) window.addEventListener('keydown', closeTop, { capture: true })
    return () => {
      open.splice(open.indexOf(close), 1)
      if (open.length === 0) window.removeEventListener('keydown', closeTop, { capture: true })
    }
  }, [isOpen])
}

function closeTop({ key, isComposing, target }: KeyboardEvent): void {
  if (key !== 'Escape' || isComposing) return
  // The library's own mark of a list that is open, which closes first.
  if (target instanceof Element && target.getAttribute('data-mantine-stop-propagation') === 'true') return
  open.at(-1)?.()
}
