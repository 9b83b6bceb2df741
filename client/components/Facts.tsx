/** Shows named values in a panel with several columns. */
import './facts.css'
import type { ReactNode } from 'react'

interface FactsProps {
  /** Accessible name of the panel. */
  readonly label: string
  readonly facts: readonly (readonly [name: string, value: ReactNode])[]
}

export function Facts({ label, facts }: FactsProps) {
  return (
    <section className="panel facts" aria-label={label}>
      <dl>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}
