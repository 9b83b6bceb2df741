/** Brings together rows of one moment and all bytes they speak of, while a server goes on adding and deleting. */
import type { SnapshotSource } from '../db/snapshot.ts'
import { StartupError } from '../lib/errors.ts'
import { toEntryName } from './manifest.ts'
import type { ByteSource, Taken } from './sources.ts'
import { listReferencedBlobs, type ReferencedBlob } from './store.ts'
import type { Entry } from './tar.ts'

/** With so many files that live for less than a round, somebody has to wait. */
const ROUNDS_BESIDE_WRITERS = 5
const MAX_ROUNDS = 10

/** What the bytes come to, beside those that are there. */
export interface Collected {
  /** Held until the end, still to be written. */
  readonly pinned: readonly ReferencedBlob[]
  /** Rows speak of them, but they are nowhere. */
  readonly lost: readonly string[]
  /** Uploads in a bucket that cannot be read before their end. */
  readonly unfinished: readonly string[]
}

/**
 * Takes the bytes, yielding those that must be written at once. When it returns, the database is pinned at a moment at which no row
 * speaks of bytes that were not taken. See docs/adr/0033.
 * @throws StartupError when files come and go faster than a bucket can be read.
 */
export async function* collect(
  database: SnapshotSource,
  source: ByteSource,
): AsyncGenerator<Entry, Collected> {
  const taken = new Set<string>()
  let missingBefore = new Set<string>()
  for (let round = 1; round <= MAX_ROUNDS; round++) {
    // Most of it, so that little is left to do while the rows stand still.
    yield* takeAll(database, source, taken)
    const last = new Round()
    if (round > ROUNDS_BESIDE_WRITERS && source.isPinning)
      await database.pinAlone(() => drain(takeAll(database, source, taken, last)))
    else {
      database.pin()
      yield* takeAll(database, source, taken, last)
    }
    // Bytes are there before their row, and longer: one that was missing before a row was seen again is lost.
    const isAllThere = last.missing.every((name) => missingBefore.has(name))
    if (isAllThere) return { pinned: last.pinned, lost: last.missing, unfinished: last.unfinished }
    database.release()
    missingBefore = new Set(last.missing)
  }
  throw new StartupError(
    'Files come and go faster than the bucket can be read; run the backup again when there is less to do.',
  )
}

/** What was found while the rows stood still. */
class Round {
  readonly pinned: ReferencedBlob[] = []
  readonly missing: string[] = []
  readonly unfinished: string[] = []
}

async function* takeAll(
  { db }: SnapshotSource,
  source: ByteSource,
  taken: Set<string>,
  round = new Round(),
): AsyncGenerator<Entry, void> {
  for await (const blob of listReferencedBlobs(db)) {
    const result = await takeOne(source, taken, blob)
    if (result === 'missing') round.missing.push(blob.name)
    else if (result === 'unfinished') round.unfinished.push(blob.name)
    else if (result === 'pinned') round.pinned.push(blob)
    else if (result !== 'written') yield result
  }
}

async function takeOne(
  source: ByteSource,
  taken: Set<string>,
  blob: ReferencedBlob,
): Promise<Taken | 'written'> {
  const name = toEntryName({ ...blob, uploadFence: undefined })
  // What grows may have grown since it was taken pin of.
  const isEnough = !source.isPinning || blob.uploadFence === undefined
  if (taken.has(name) && isEnough) return source.isPinning ? 'pinned' : 'written'
  const result = await source.take(blob)
  if (result === 'pinned' || typeof result === 'object') taken.add(name)
  return result
}

/** A source that pins yields nothing. */
async function drain(entries: AsyncIterable<Entry>): Promise<void> {
  for await (const { name } of entries) throw new Error(`${name} is not held`)
}
