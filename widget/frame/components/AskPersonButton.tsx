/** Lets the visitor ask for a person where an answer has failed. */
import { useSyncExternalStore } from 'react'
import type { AppState } from '../app-state.ts'
import { useFrame } from '../frame-context.ts'

/** Returns whether the visitor can ask for a person now. */
export function canAskPerson({ agent, home, conversationId, answering }: AppState): boolean {
  const isAllowed = home === 'server' && agent?.conversations?.handover?.button === true
  return isAllowed && conversationId !== undefined && answering.mode === 'model'
}

/** Shows nothing if the visitor cannot ask for a person. */
export function AskPersonButton() {
  const { session, language } = useFrame()
  const { store } = session
  const canAsk = useSyncExternalStore(store.subscribe, () => canAskPerson(store.get()))
  if (!canAsk) return null
  return (
    <button
      type="button"
      className="button"
      onClick={({ currentTarget }) => {
        // The button disappears, so the focus moves to the messages.
        currentTarget.closest<HTMLElement>('.scroller')?.focus()
        session.stored.requestPerson()
      }}
    >
      {language.strings.people.ask}
    </button>
  )
}
