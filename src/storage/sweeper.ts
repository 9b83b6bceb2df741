/** Deletes expired rows and orphans (blobs without a database row), a limited number per run. */
import { type Clock, createDeletionTime } from '../lib/clock.ts'
import type { BlobEntry, Blobs } from './blobs.ts'
import type { Dependencies } from './dependencies.ts'

const BATCH = 200
const MAX_PER_RUN = 1_000
/** A run that finds more orphans than both of these limits deletes none of them. */
const MAX_ORPHANS = 100
const MAX_ORPHAN_SHARE = 0.05
/** Younger blobs without a row are not orphans, because their row may not have been written yet. */
const ORPHAN_AFTER_MS = 3_600_000
const ORPHAN_SWEEP_INTERVAL_MS = 3_600_000
const SWEEP_EVERY_MS = 60_000

export interface Sweeper {
  run(): Promise<void>
}

interface SweeperOptions extends Pick<Dependencies, 'clock' | 'log'> {
  readonly what: string
  readonly places: readonly BlobPlace[]
  readonly blobs: Blobs
  /** Deletes rows that expired before `nowMs`; returns how many it deleted. */
  deleteExpired(limit: number, nowMs: number): Promise<number>
  afterExpired?(): Promise<void>
}

/**
 * Creates a sweeper. Each run deletes expired rows and, once an hour, orphans. For a day after a clock jump,
 * it deletes only data that would have expired without the jump.
 */
export function createSweeper(options: SweeperOptions): Sweeper {
  const { clock, log, what, places, blobs, deleteExpired } = options
  const readDeletionTime = createDeletionTime(clock, (seconds) =>
    log.warn(
      { what, seconds },
      'the clock jumped ahead; data that expired only because of the jump will not be deleted for a day',
    ),
  )
  let nextOrphansAtMs = clock.monotonic()

  return {
    async run() {
      const nowMs = readDeletionTime()
      for (let deleted = 0; deleted < MAX_PER_RUN; deleted += BATCH) {
        if ((await deleteExpired(BATCH, nowMs)) < BATCH) break
      }
      await options.afterExpired?.()
      if (clock.monotonic() < nextOrphansAtMs) return
      nextOrphansAtMs = clock.monotonic() + ORPHAN_SWEEP_INTERVAL_MS
      await deleteOrphans(places, nowMs - ORPHAN_AFTER_MS, options)
      await blobs.abortAbandoned()
    },
  }
}

/** Sweeps every minute. The returned function stops sweeping and waits for the current run. */
export function startSweeper(
  sweeper: Sweeper,
  what: string,
  { log }: Pick<Dependencies, 'log'>,
): () => Promise<void> {
  let running = Promise.resolve()
  const onFailure = (error: unknown) => log.warn({ err: error }, `failed to sweep ${what}`)
  const timer = setInterval(() => {
    running = running.then(() => sweeper.run()).catch(onFailure)
  }, SWEEP_EVERY_MS).unref()
  return async () => {
    clearInterval(timer)
    await running
  }
}

export interface BlobPlace {
  list(): AsyncIterable<BlobEntry>
  listOwned(names: readonly string[]): Promise<ReadonlySet<string>>
  remove(name: string): Promise<void>
}

export interface OrphanReport {
  readonly objects: number
  readonly orphans: number
  readonly deleted: number
}

/** Returns the Unix time in milliseconds before which a stored blob without a row is an orphan. */
export function orphanCutoff(clock: Clock): number {
  return clock.now() - ORPHAN_AFTER_MS
}

/**
 * Deletes no orphans if there are more than crashes can explain, because the database is then probably wrong
 * or outdated. See docs/adr/0040.
 */
async function deleteOrphans(
  places: readonly BlobPlace[],
  storedBeforeMs: number,
  { what, log }: Pick<SweeperOptions, 'what' | 'log'>,
): Promise<void> {
  const found: [BlobPlace, string[]][] = []
  let collected = 0
  const counts = await countOrphans(places, storedBeforeMs, async (place, names) => {
    const some = names.slice(0, MAX_PER_RUN - collected)
    collected += some.length
    if (some.length > 0) found.push([place, some])
  })
  const limit = Math.max(MAX_ORPHANS, Math.floor(counts.objects * MAX_ORPHAN_SHARE))
  if (counts.orphans > limit) {
    log.warn(
      { what, ...counts, limit },
      'too many stored objects have no row, so none was deleted; check that the database and the storage belong together, then run `parley store orphans --delete`',
    )
    return
  }
  for (const [place, names] of found) await removeOrphans(place, names)
}

export async function deleteAllOrphans(
  places: readonly BlobPlace[],
  storedBeforeMs: number,
): Promise<OrphanReport> {
  const counts = await countOrphans(places, storedBeforeMs, removeOrphans)
  return { ...counts, deleted: counts.orphans }
}

export async function countOrphans(
  places: readonly BlobPlace[],
  storedBeforeMs: number,
  onOrphans: (place: BlobPlace, names: readonly string[]) => Promise<void> = async () => {},
): Promise<Omit<OrphanReport, 'deleted'>> {
  let [objects, orphans] = [0, 0]
  for (const place of places) {
    for await (const batch of inBatches(place.list())) {
      objects += batch.length
      const old = batch.filter(({ storedAtMs }) => storedAtMs < storedBeforeMs).map(({ name }) => name)
      const names = await filterOrphans(place, old)
      orphans += names.length
      if (names.length > 0) await onOrphans(place, names)
    }
  }
  return { objects, orphans }
}

async function filterOrphans(place: BlobPlace, names: readonly string[]): Promise<string[]> {
  if (names.length === 0) return []
  const owned = await place.listOwned(names)
  return names.filter((name) => !owned.has(name))
}

/** Checks the rows again, because listing a large store takes time. */
async function removeOrphans(place: BlobPlace, names: readonly string[]): Promise<void> {
  for (const name of await filterOrphans(place, names)) await place.remove(name)
}

export async function* inBatches<T>(items: AsyncIterable<T>): AsyncIterable<T[]> {
  let batch: T[] = []
  for await (const item of items) {
    batch.push(item)
    if (batch.length < BATCH) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}
