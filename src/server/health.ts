/** Checks the service's health for `/readyz`. */
import { hasParentKey } from '../identity/keys.ts'
import { within } from '../lib/timeout.ts'
import type { Deps } from './dependencies.ts'

const CHECK_TIMEOUT_MS = 500
/** The result is cached, because the path needs no key. */
const DATABASE_CACHED_MS = 1_000
/** The result is cached, because the check writes to storage. */
const STORAGE_CACHED_MS = 5_000
/** If the next check hangs, the last result is used for this long. */
const STORAGE_STALE_MS = 20_000

type StorageState = 'up' | 'full' | 'down'

type HealthDeps = Pick<
  Deps,
  'db' | 'models' | 'fileBlobs' | 'clock' | 'shared' | 'tools' | 'addressSharing' | 'conversations'
>

/**
 * Reports `unavailable` if the database or the storage is down, and `degraded` if the storage is full, or if
 * a provider, an MCP server, the coordination store or the conversation store is down.
 */
export function createHealth(deps: HealthDeps) {
  const { models, shared, tools, addressSharing, conversations } = deps
  const readStorage = createStorageReader(deps)
  const isDatabaseUpNow = createDatabaseProbe(deps)
  return async (isDraining: boolean) => {
    const [isDatabaseUp, storage, conversationStore] = await Promise.all([
      isDatabaseUpNow(),
      readStorage(),
      within(CHECK_TIMEOUT_MS, conversations.checkStore(), () => 'down' as const),
    ])
    const backends = models.health()
    const shares = shared.health()
    const mcp = tools.health()
    const lesser = [shares, backends, mcp].flatMap((states) => Object.values(states))
    const isStoreFailing = conversationStore === 'down'
    const isDegraded = storage === 'full' || isStoreFailing || lesser.includes('down')
    const isReady = isDatabaseUp && storage !== 'down' && !isDraining
    const status = isDraining ? 'draining' : !isReady ? 'unavailable' : isDegraded ? 'degraded' : 'ready'
    const database = isDatabaseUp ? 'up' : 'down'
    const checks = {
      ...{ database, ...shares, storage, backends },
      ...(Object.keys(mcp).length > 0 && { mcp }),
      ...(isStoreFailing && { conversations: 'down' }),
      // Does not change the status, because the server still works.
      ...(addressSharing.isShared && { addresses: 'shared' }),
    }
    return { isReady, report: { status, checks } }
  }
}

/** Runs at most one query at a time, and at most one per second. */
function createDatabaseProbe({ db, clock }: Pick<Deps, 'db' | 'clock'>): () => Promise<boolean> {
  let isUp = false
  let checkedAtMs = Number.NEGATIVE_INFINITY
  let asking: Promise<boolean> | undefined

  async function ask(): Promise<boolean> {
    isUp = await hasParentKey(db).then(
      () => true,
      () => false,
    )
    checkedAtMs = clock.monotonic()
    asking = undefined
    return isUp
  }

  return async () => {
    if (clock.monotonic() - checkedAtMs < DATABASE_CACHED_MS) return isUp
    asking ??= ask()
    return within(CHECK_TIMEOUT_MS, asking, () => false)
  }
}

/** Runs one check at a time, because a hanging file system blocks one of Node's few threads. */
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
    if (known !== undefined && ageMs < STORAGE_CACHED_MS) return known.state
    asking ??= ask()
    const lastState = known !== undefined && ageMs < STORAGE_STALE_MS ? known.state : 'down'
    return within(CHECK_TIMEOUT_MS, asking, () => lastState)
  }
}
