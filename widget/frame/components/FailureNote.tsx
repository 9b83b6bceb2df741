/** Shows a failure, and a retry button if a retry can help. */
import { type ReactNode, useEffect, useState } from 'react'
import { type Failure, isLasting } from '../failure.ts'
import { useFrame } from '../frame-context.ts'
import { fill, secondsIn } from '../strings/strings.ts'
import { WarnIcon } from './icons.tsx'

interface Props {
  readonly failure: Failure
  /** Adds a button, unless only the page can fix the failure. */
  readonly onRetry?: (() => void) | undefined
  /** Other buttons. */
  readonly children?: ReactNode
}

export function FailureNote({ failure, onRetry, children }: Props) {
  const { language } = useFrame()
  const { failures, retry } = language.strings
  const secondsLeft = useSecondsUntil(failure.retryAtMs)
  const text =
    secondsLeft > 0
      ? fill(failures.rate_limited_wait, { wait: secondsIn(language, secondsLeft) })
      : failures[failure.code]
  return (
    <div className="failure">
      <WarnIcon />
      <p>{text}</p>
      <div className="failure-buttons">
        {onRetry !== undefined && !isLasting(failure) && (
          <button type="button" className="button" disabled={secondsLeft > 0} onClick={onRetry}>
            {retry}
          </button>
        )}
        {children}
      </div>
    </div>
  )
}

/** Returns the seconds until `timeMs`, rounded up; 0 once it has passed. */
function useSecondsUntil(timeMs: number | undefined): number {
  const [nowMs, setNowMs] = useState(Date.now)
  const leftMs = timeMs === undefined ? 0 : timeMs - nowMs
  useEffect(() => {
    if (leftMs <= 0) return
    const timer = setTimeout(() => setNowMs(Date.now()), leftMs % 1000 || 1000)
    return () => clearTimeout(timer)
  }, [leftMs])
  return Math.max(0, Math.ceil(leftMs / 1000))
}
