/**
 * Follows the conversations that wait for a person or for the user's answer. One tab of the browser reads the stream for all tabs,
 * because browsers open at most six HTTP/1.1 connections to a server.
 */
import { useEffect, useSyncExternalStore } from 'react'
import { api, type Outputs, queryClient } from '../api.ts'
import { followStream } from '../follow-stream.ts'
import { setTitleCount } from './document-title.ts'
import { notify } from './notifications.ts'
import { useMe } from './use-me.ts'

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
  const { keys, parent_key: fallback } = useMe()
  const keyId = keys.find((key) => key.is_active)?.id ?? fallback
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
  const name = `parley-waiting-${keyId}`
  const tabs = new BroadcastChannel(name)
  signal.addEventListener('abort', () => tabs.close())
  let isReader = false
  tabs.onmessage = ({ data }: MessageEvent<Waiting | 'ask'>) => {
    if (data !== 'ask') show(data)
    else if (isReader) tabs.postMessage(current)
  }
  tabs.postMessage('ask')
  const read = async () => {
    isReader = true
    let isFirst = true
    const onEvent = (waiting: Waiting) => {
      const before = current
      show(waiting)
      tabs.postMessage(waiting)
      // Only the reading tab shows notifications, so that each conversation causes only one.
      if (!isFirst) notify(before, waiting)
      isFirst = false
    }
    const open = (reading: AbortSignal) =>
      api.conversations.waiting.query({}, { signal: reading, context: { isBackground: true } })
    await followStream({ open, onEvent, signal })
    isReader = false
  }
  // Locks exist only on secure pages; without them, each tab reads the stream.
  if (navigator.locks === undefined) void read()
  else void navigator.locks.request(name, { signal }, read).catch(() => undefined)
}

function show(waiting: Waiting): void {
  const isSame = JSON.stringify(waiting) === JSON.stringify(current)
  if (isSame) return
  current = waiting
  setTitleCount(countAll(waiting))
  for (const listener of listeners) listener()
  void queryClient.invalidateQueries({ queryKey: ['conversations', 'list'] })
}
