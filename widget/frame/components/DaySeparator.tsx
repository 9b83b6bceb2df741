/** Separates messages of different days. */
import { useFrame } from '../frame-context.ts'
import { dayIn } from '../strings/strings.ts'

interface Props {
  readonly atMs: number | undefined
  /** Time of the previous message; undefined for the first one. */
  readonly beforeMs: number | undefined
}

/** Shows nothing if the previous message has the same day, or if the first message is from today. */
export function DaySeparator({ atMs, beforeMs }: Props) {
  const { language } = useFrame()
  const nowMs = Date.now()
  if (atMs === undefined || isSameDay(atMs, beforeMs ?? nowMs)) return null
  return (
    <p className="day">
      <span>{dayIn(language, atMs, nowMs)}</span>
    </p>
  )
}

function isSameDay(oneMs: number, otherMs: number): boolean {
  return new Date(oneMs).toDateString() === new Date(otherMs).toDateString()
}
