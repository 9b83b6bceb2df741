/** What an empty chat shows. Contract: Chat widget component (welcomeMessage, greeting). */
import type { AppState } from '../app-state.ts'
import { useFrame } from '../frame-context.ts'
import { Markdown } from '../markdown/Markdown.tsx'

export function Welcome({ state: { options } }: { state: AppState }) {
  if (!options?.welcomeMessage) return null
  return (
    <p className="welcome" dir="auto">
      {options.welcomeMessage}
    </p>
  )
}

/** What a person may want to say first; one press says it. */
export function Starters({ state: { agent } }: { state: AppState }) {
  const { session, language } = useFrame()
  const starters = [...new Set(agent?.starters)]
  if (starters.length === 0) return null
  return (
    <ul className="starters" aria-label={language.strings.startersLabel}>
      {starters.map((starter) => (
        <li key={starter}>
          <button type="button" className="starter" dir="auto" onClick={() => session.send(starter)}>
            {starter}
          </button>
        </li>
      ))}
    </ul>
  )
}

/** Looks like a reply, and is none: the model never sees it. */
export function Greeting({ state: { options, agent } }: { state: AppState }) {
  const { language, parser } = useFrame()
  const greeting = options?.greeting || agent?.greeting
  if (!greeting) return null
  return (
    <article className="entry reply">
      <h2 className="unseen">{language.strings.assistantSaid}</h2>
      <div className="prose">
        <Markdown text={greeting} parser={parser} />
      </div>
    </article>
  )
}
