/** Shows one part of the design system under a heading. */
import { Title } from '@mantine/core'
import type { ReactNode } from 'react'

export function Section({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section>
      <Title order={2} mb="sm">
        {title}
      </Title>
      {children}
    </section>
  )
}
