/** Shows facts as names and values in two columns. */
import type { ReactNode } from 'react'

export function FactList({ children }: { readonly children: ReactNode }) {
  return <dl className="side-facts">{children}</dl>
}

interface FactProps {
  readonly name: string
  /** Uses both columns, for long values. */
  readonly isWide?: boolean
  readonly children: ReactNode
}

export function Fact({ name, isWide = false, children }: FactProps) {
  return (
    <div data-wide={isWide || undefined}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}
