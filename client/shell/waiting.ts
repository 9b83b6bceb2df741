/** Follows the conversations that wait for a person or for the user's answer. */
import { useEffect, useSyncExternalStore } from 'react'
import { api, type Outputs } from '../api.ts'
import { followShared } from '../shared-stream.ts'
import { setTitleCount } from './document-title.ts'
import { notify } from './notifications.ts'
import { useKeyId } from './use-me.ts'

type Stream = Outputs['conversations']['waiting']
export type Waiting = Stream extends AsyncIterable<infer Event> ? Event : never

const none: Waiting = { count: 0, conversations: [], mine: [] }
let current = none
const listeners = new Set<() => void>()

export function useWaiting(): Waiting {
  return useSyncExternalStore(subscribe, () => current)
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** Returns how many conversations wait for any person or for the user's answer. */
export function useWaitingCount(): number {
  return countAll(useWaiting())
}

function countAll({ count, mine }: Waiting): number {
  return count + mine.length
}

/** Follows the active key's conversations while the component is mounted. */
export function useWaitingStream(): void {
  const keyId = useKeyId()
  useEffect(() => {
    const leaving = new AbortController()
    follow(keyId, leaving.signal)
    return () => {
      leaving.abort()
      show(none)
    }
  }, [keyId])
}

function follow(keyId: string, signal: AbortSignal): void {
  followShared<Waiting>({
    name: `parley-waiting-${keyId}`,
    open: (reading) =>
      api.conversations.waiting.query({}, { signal: reading, context: { isBackground: true } }),
    onEvent(waiting, isNews) {
      const before = current
      show(waiting)
      // Only the reading tab shows notifications, so that each conversation causes only one.
      if (isNews) notify(before, waiting)
    },
    signal,
  })
}

function show(waiting: Waiting): void {
  const isSame = JSON.stringify(waiting) === JSON.stringify(current)
  if (isSame) return
  current = waiting
  setTitleCount(countAll(waiting))
  for (const listener of listeners) listener()
}
