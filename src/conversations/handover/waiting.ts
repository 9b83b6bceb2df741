/** Reports to owners which of their conversations wait for a person, and which for their own answer. */
import type { Conversations } from '../conversations.ts'
import type { Waiting } from './schema.ts'
import { readWaiting } from './waiting-rows.ts'

/** Polling interval; a poll finds changes whose notification was lost. */
const POLL_MS = 10_000

/** Yields the tenant's waiting conversations and those of the assignee now, and after each change. */
export async function* followWaiting(
  conversations: Conversations,
  reader: { readonly tenantId: string; readonly assignee: string },
  signal: AbortSignal,
): AsyncGenerator<Waiting, void, void> {
  let last: string | undefined
  while (!signal.aborted) {
    // Starts to wait before it reads the rows, so that it misses no change.
    const change = conversations.waitForChange(reader.tenantId, signal, POLL_MS)
    try {
      const waiting = await readWaiting(conversations.storage, reader)
      const text = JSON.stringify(waiting)
      if (text !== last) yield waiting
      last = text
      await change.promise
    } finally {
      change.cancel()
    }
  }
}
