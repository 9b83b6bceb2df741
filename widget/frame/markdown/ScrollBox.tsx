/** What may be wider than the window, and is scrolled by itself, with the keyboard too. */
import type { ReactNode } from 'react'
import { useFrame } from '../frame-context.ts'

export function ScrollBox({ kind, children }: { kind: 'code' | 'table'; children: ReactNode }) {
  const { strings } = useFrame().language
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled with the keyboard
    <section className={`scroll-${kind}`} tabIndex={0} aria-label={strings[kind]}>
      {children}
    </section>
  )
}
