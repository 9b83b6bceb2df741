/** Shows that the assistant can make mistakes, with a link to privacy information. */
import type { AppState } from '../app-state.ts'
import { useFrame } from '../frame-context.ts'

/** Shows nothing until the agent is known, because the agent can change or hide it. */
export function Disclaimer({ state: { home, agent } }: { state: AppState }) {
  const { strings } = useFrame().language
  const { text, url } = agent?.disclaimer ?? {}
  if (home === 'unknown' || agent?.disclaimer === null) return null
  return (
    <p className="disclaimer" dir={text ? 'auto' : undefined}>
      {text || strings.disclaimer}
      {url && (
        <>
          {' '}
          <a href={url} target="_blank" rel="noopener noreferrer">
            {strings.privacyLink}
          </a>
        </>
      )}
    </p>
  )
}
