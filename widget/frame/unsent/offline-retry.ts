/** Sends a message again that could not be sent offline, from one tab only. */
import type { Store } from '../app-state.ts'
import { claim } from './claim.ts'

/** Returns a function that must be called when the network is available again. */
export function createOfflineRetry({ get, subscribe }: Store, retry: () => void): () => void {
  const never = new AbortController().signal
  const seen = new Set<string>()
  const claimed = new Set<string>()

  /** Returns the id of the newest reply if it failed because the browser was offline. */
  function findFailed(): string | undefined {
    const last = get().conversation.entries.at(-1)
    return last?.kind === 'reply' && last.failure?.code === 'offline' ? last.id : undefined
  }

  function retryFailed(): void {
    const id = findFailed()
    // Tabs do not share the failed messages of conversations that the server stores.
    if (id !== undefined && navigator.onLine && (get().home === 'server' || claimed.has(id))) retry()
  }

  subscribe(() => {
    const id = findFailed()
    if (id === undefined || get().home !== 'browser' || seen.has(id)) return
    seen.add(id)
    claim(id, never, () => {
      claimed.add(id)
      retryFailed()
      // Other tabs learn of the retry only when its reply is complete, so they get the claim when this tab is closed.
      return new Promise(() => {})
    })
  })

  return retryFailed
}
