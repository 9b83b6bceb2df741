/** Deletes old rows during a soak test, so that the database does not grow. */
import { setTimeout as wait } from 'node:timers/promises'
import { openDatabase } from '../../src/db/open.ts'
import { firstCallIdAt } from '../../src/usage/call-ids.ts'
import { deleteCallsBefore } from '../../src/usage/store.ts'

const EVERY_MS = 2_000
const KEPT_MS = 20_000
const AT_ONCE = 500

/** Repeatedly deletes calls and audit events older than 20 s; returns a function that stops this. */
export async function boundRows(options: {
  dataDir: string
  databaseUrl: string | undefined
}): Promise<() => Promise<void>> {
  const { db, close } = await openDatabase({ ...options, role: 'command' })
  const stopping = new AbortController()

  async function trim(): Promise<void> {
    while (!stopping.signal.aborted) {
      const firstKeptMs = Date.now() - KEPT_MS
      // Deletes small batches, because the server cannot write to SQLite at the same time.
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
