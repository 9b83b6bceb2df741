/** Shows the time of a message. */
import { useFrame } from '../frame-context.ts'

/** Shows nothing for messages that were stored without a time. */
export function Time({ atMs }: { atMs: number | undefined }) {
  const { tag } = useFrame().language
  if (atMs === undefined) return null
  const date = new Date(atMs)
  const full = new Intl.DateTimeFormat(tag, { dateStyle: 'full', timeStyle: 'short' }).format(date)
  return (
    <time className="time" dateTime={date.toISOString()} title={full}>
      {new Intl.DateTimeFormat(tag, { timeStyle: 'short' }).format(date)}
    </time>
  )
}
