/** Collects a consistent snapshot of rows and their blobs while a server changes both. */
import type { SnapshotSource } from '../db/snapshot.ts'
import { StartupError } from '../lib/errors.ts'
import { toEntryName } from './manifest.ts'
import type { ByteSource, Taken } from './sources.ts'
import { listReferencedBlobs, type ReferencedBlob } from './store.ts'
import type { Entry } from './tar.ts'

/**
 * Number of rounds during which other processes may write. With files on disk, later rounds block writers,
 * because the files change too fast.
 */
const ROUNDS_BESIDE_WRITERS = 5
const MAX_ROUNDS = 10

export class Collected {
  readonly pinned: ReferencedBlob[] = []
  readonly missing: string[] = []
  readonly unfinished: string[] = []
}

/**
 * Yields the blobs that cannot be pinned. Returns when every blob that the pinned rows refer to is collected
 * or known to be lost.
 * @throws StartupError if files change too fast.
 */
export async function* collect(
  database: SnapshotSource,
  source: ByteSource,
): AsyncGenerator<Entry, Collected> {
  const taken = new Set<string>()
  let missingBefore = new Set<string>()
  for (let round = 1; round <= MAX_ROUNDS; round++) {
    // Collects most blobs before the rows are pinned, so that the rows are pinned only briefly.
    yield* takeAll(database, source, taken)
    const last = new Collected()
    if (round > ROUNDS_BESIDE_WRITERS && source.isPinning) {
      await database.pinAlone(async () => {
        for await (const { name } of takeAll(database, source, taken, last))
          throw new Error(`the backup does not pin ${name}`)
      })
    } else {
      database.pin()
      yield* takeAll(database, source, taken, last)
    }
    // A blob exists before its row and is deleted after its row, so a blob that is missing in two rounds is
    // lost.
    if (last.missing.every((name) => missingBefore.has(name))) return last
    database.release()
    missingBefore = new Set(last.missing)
  }
  throw new StartupError(
    'Files are changing faster than the backup can read them; run the backup again when there is less traffic.',
  )
}

async function* takeAll(
  { db, conversations }: SnapshotSource,
  source: ByteSource,
  taken: Set<string>,
  collected = new Collected(),
): AsyncGenerator<Entry, void> {
  for await (const blob of listReferencedBlobs(db, conversations?.db)) {
    const result = await takeOne(source, taken, blob)
    if (result === 'missing') collected.missing.push(blob.name)
    else if (result === 'unfinished') collected.unfinished.push(blob.name)
    else if (result === 'pinned') collected.pinned.push(blob)
    else if (result !== 'written') yield result
  }
}

async function takeOne(
  source: ByteSource,
  taken: Set<string>,
  blob: ReferencedBlob,
): Promise<Taken | 'written'> {
  const name = toEntryName({ ...blob, uploadFence: undefined })
  // An active upload may have received more bytes since it was pinned.
  const isEnough = !source.isPinning || blob.uploadFence === undefined
  if (taken.has(name) && isEnough) return source.isPinning ? 'pinned' : 'written'
  const result = await source.take(blob)
  if (result === 'pinned' || typeof result === 'object') taken.add(name)
  return result
}
