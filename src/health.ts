/** What `/readyz` tells of the service's parts. */
import { setTimeout as wait } from 'node:timers/promises'
import type { Health } from './app.ts'
import type { Deps } from './deps.ts'
import { hasParentKey } from './keys/store.ts'

/** Security: 2.12 (`/readyz`). */
const READY_WITHIN_MS = 500

/** A backend that is down degrades the service; a database that is down ends it. Decision: 3. */
export async function readHealth(
  { db, models }: Pick<Deps, 'db' | 'models'>,
  isDraining: boolean,
): ReturnType<Health['read']> {
  const isDatabaseUp = await answersInTime(hasParentKey(db))
  const backends = models.health()
  const isDegraded = Object.values(backends).includes('down')
  const isReady = isDatabaseUp && !isDraining
  const status = isDraining ? 'draining' : !isReady ? 'unavailable' : isDegraded ? 'degraded' : 'ready'
  return { isReady, report: { status, checks: { database: isDatabaseUp ? 'up' : 'down', backends } } }
}

async function answersInTime(query: Promise<unknown>): Promise<boolean> {
  const tooLate = new AbortController()
  const late = wait(READY_WITHIN_MS, false, { signal: tooLate.signal, ref: false }).catch(() => false)
  const answered = query.then(
    () => true,
    () => false,
  )
  const isInTime = await Promise.race([answered, late])
  tooLate.abort()
  return isInTime
}
