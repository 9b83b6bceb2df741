/** Provides inline text components: a relative time, a time of day and a router link. */

import { Anchor, type AnchorProps } from '@mantine/core'
import { createLink } from '@tanstack/react-router'
import type { ComponentProps } from 'react'
import { renderAgo, renderClock, renderMoment } from '../format.ts'

export function Ago({ seconds }: { readonly seconds: number }) {
  return (
    <time dateTime={new Date(seconds * 1_000).toISOString()} title={renderMoment(seconds)}>
      {renderAgo(seconds)}
    </time>
  )
}

/** Shows the time of day, with the date in its title. */
export function ClockTime({ seconds }: { readonly seconds: number }) {
  return (
    <time dateTime={new Date(seconds * 1_000).toISOString()} title={renderMoment(seconds)}>
      {renderClock(seconds)}
    </time>
  )
}

type Props = AnchorProps & Omit<ComponentProps<'a'>, keyof AnchorProps>

export const TextLink = createLink((props: Props) => <Anchor {...props} />)
