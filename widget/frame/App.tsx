/** The window: header, conversation, input. */
import { useSyncExternalStore } from 'react'
import { findStreaming, textOf } from './conversation/state.ts'
import type { Session } from './session.ts'

export function App({ session }: { session: Session }) {
  const state = useSyncExternalStore(session.store.subscribe, session.store.get)
  if (state.options === undefined) return null
  const isStreaming = findStreaming(state.conversation) !== undefined
  return (
    <main>
      <h1>{state.options.title ?? state.agent?.name ?? 'Chat'}</h1>
      <ol>
        {state.conversation.entries.map((entry) => (
          <li key={entry.id} className={entry.kind}>
            {entry.kind === 'user' ? entry.text : textOf(entry)}
          </li>
        ))}
      </ol>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          const form = event.currentTarget
          const text = String(new FormData(form).get('text'))
          if (session.send(text)) form.reset()
        }}
      >
        <input name="text" placeholder={state.options.placeholder} />
        {isStreaming ? (
          <button type="button" onClick={session.stop}>
            Stop
          </button>
        ) : (
          <button type="submit">Send</button>
        )}
      </form>
    </main>
  )
}
