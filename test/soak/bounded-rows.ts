/**
 * Limits the rows of a soak: rows that an installation keeps for weeks are deleted after seconds, so that they do
 * not dominate memory.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { openDatabase } from '../../src/db/open.ts'
import { deleteCallsBefore } from '../../src/usage/store.ts'
import { firstCallIdAt } from '../../src/usage/tracker.ts'

const EVERY_MS = 2_000
const KEPT_MS = 20_000
const AT_ONCE = 500

/** Deletes old calls and audit events next to the server; returns a function that stops it. */
export async function boundRows(options: {
  dataDir: string
  databaseUrl: string | undefined
}): Promise<() => Promise<void>> {
  const { db, close } = await openDatabase({ ...options, role: 'command' })
  const stopping = new AbortController()

  async function trim(): Promise<void> {
    while (!stopping.signal.aborted) {
      const firstKeptMs = Date.now() - KEPT_MS
      // Deletes in small batches, because the server cannot write at the same time.
      while ((await deleteCallsBefore(db, firstCallIdAt(firstKeptMs), AT_ONCE)) === AT_ONCE);
      await db
        .deleteFrom('audit_events')
        .where('created_at', '<', Math.floor(firstKeptMs / 1e3))
        .execute()
      await wait(EVERY_MS, undefined, { signal: stopping.signal }).catch(() => {})
    }
  }

  const trimming = trim()
  return async () => {
    stopping.abort()
    await trimming
    await close()
  }
}
