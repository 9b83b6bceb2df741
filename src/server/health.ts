/** What `/readyz` tells of the service's parts. */
import { hasParentKey } from '../identity/keys.ts'
import { within } from '../lib/timeout.ts'
import type { Health } from './app.ts'
import type { Deps } from './dependencies.ts'

/** Security: 2.12 (`/readyz`). */
const READY_WITHIN_MS = 500
/** Storage is looked at by writing to it, so not for every probe. */
const STORAGE_KNOWN_FOR_MS = 5_000
/** A store across a network may take longer than a probe waits; what it said last is believed for so long. */
const STORAGE_BELIEVED_FOR_MS = 20_000

type StorageState = 'up' | 'full' | 'down'

/**
 * Reads the health of a service. A database or a storage that is down ends it; a storage without room for more files degrades it, and
 * so does a backend, an MCP server or what replicas share when it is down. Decision: 3.
 */
export function createHealth(
  deps: Pick<Deps, 'db' | 'models' | 'fileBlobs' | 'clock' | 'shared' | 'tools'>,
): (isDraining: boolean) => ReturnType<Health['read']> {
  const { db, models, shared, tools } = deps
  const readStorage = createStorageReader(deps)
  return async (isDraining) => {
    const isFound = hasParentKey(db).then(() => true)
    const [isDatabaseUp, storage] = await Promise.all([
      within(READY_WITHIN_MS, isFound, () => false).catch(() => false),
      readStorage(),
    ])
    const backends = models.health()
    const shares = shared.health()
    const mcp = tools.health()
    const lesser = [shares, backends, mcp].flatMap((states) => Object.values(states))
    const isDegraded = storage === 'full' || lesser.includes('down')
    const isReady = isDatabaseUp && storage !== 'down' && !isDraining
    const status = isDraining ? 'draining' : !isReady ? 'unavailable' : isDegraded ? 'degraded' : 'ready'
    const database = isDatabaseUp ? 'up' : 'down'
    const ofMcp = Object.keys(mcp).length === 0 ? {} : { mcp }
    return { isReady, report: { status, checks: { database, ...shares, storage, backends, ...ofMcp } } }
  }
}

/** Never asks twice at once: what hangs in the file system holds one of the few threads there are for it. */
function createStorageReader({
  fileBlobs,
  clock,
}: Pick<Deps, 'fileBlobs' | 'clock'>): () => Promise<StorageState> {
  let known: { state: StorageState; sinceMs: number } | undefined
  let asking: Promise<StorageState> | undefined

  async function ask(): Promise<StorageState> {
    const state = await fileBlobs.check().catch(() => 'down' as const)
    known = { state, sinceMs: clock.monotonic() }
    asking = undefined
    return state
  }

  return async () => {
    const ageMs = known === undefined ? Number.POSITIVE_INFINITY : clock.monotonic() - known.sinceMs
    if (known !== undefined && ageMs < STORAGE_KNOWN_FOR_MS) return known.state
    asking ??= ask()
    const lastState = known !== undefined && ageMs < STORAGE_BELIEVED_FOR_MS ? known.state : 'down'
    return within(READY_WITHIN_MS, asking, () => lastState)
  }
}
