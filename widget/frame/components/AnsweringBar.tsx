/** Shows that the visitor waits for a person, or which person answers. */
import type { AppState } from '../app-state.ts'
import { useFrame } from '../frame-context.ts'
import { durationIn, fill } from '../strings/strings.ts'
import { Dots } from './Dots.tsx'
import { PersonFace } from './PersonViews.tsx'

/** Shows nothing while the model answers. */
export function AnsweringBar({ state: { answering, agent } }: { state: AppState }) {
  const { language } = useFrame()
  const { people } = language.strings
  const { mode, name } = answering
  if (mode === 'model') return null
  const seconds = agent?.conversations?.handover?.timeout_seconds ?? 0
  return (
    <section className="answering" data-mode={mode} aria-label={people.status}>
      {mode === 'person' ? (
        <>
          <PersonFace name={name} />
          <p>{name === null ? people.talkingUnnamed : fill(people.talking, { name })}</p>
        </>
      ) : (
        <>
          <span aria-hidden="true">
            <Dots label="" />
          </span>
          <p>
            <strong>{people.waiting}</strong> {people.waitingHint}{' '}
            {seconds > 0 && fill(people.waitingNext, { time: durationIn(language, seconds) })}
          </p>
        </>
      )}
    </section>
  )
}
