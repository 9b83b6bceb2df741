/** Shows that the server stores the conversation. */
import type { AppState } from '../app-state.ts'
import { useFrame } from '../frame-context.ts'
import { daysIn, fill } from '../strings/strings.ts'

/** Shows nothing if the browser stores the conversation. */
export function Notice({ state: { home, agent } }: { state: AppState }) {
  const { language } = useFrame()
  const { strings } = language
  const { keep_days, notice } = agent?.conversations ?? {}
  if (home !== 'server') return null
  const text = notice?.text || fill(strings.notice, { days: daysIn(language, keep_days ?? 0) })
  return (
    <p className="notice" dir={notice?.text ? 'auto' : undefined}>
      {text}{' '}
      {notice?.url && (
        <a href={notice.url} target="_blank" rel="noopener noreferrer">
          {strings.noticeLink}
        </a>
      )}
    </p>
  )
}
