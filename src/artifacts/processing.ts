/** Turns the bytes of a complete upload into what is served, outside the request that brought them. */
import type { Deps } from '../deps.ts'
import { HEAD_BYTES } from '../storage/blobs.ts'
import type { GrowingStore } from '../storage/growing.ts'
import { sniff } from '../storage/sniff.ts'
import type { ArtifactChanges } from './changes.ts'
import { convertArtifact, findUploadRow, type Upload } from './store.ts'

export interface ProcessingDeps extends Pick<Deps, 'db' | 'log'> {
  readonly store: GrowingStore
  readonly changes: ArtifactChanges
}

/** What happens to artifacts that are `processing`. The state in the row is what survives a crash: a start begins with those again. */
export interface Processing {
  /** Begins with an artifact, unless that is under way; never fails. */
  start(upload: Upload): void
  /** Resolves when nothing is under way. */
  close(): Promise<void>
}

export function createProcessing(deps: ProcessingDeps): Processing {
  const underWay = new Map<string, Promise<void>>()
  return {
    start({ blob }) {
      if (underWay.has(blob)) return
      const run = finishProcessing(deps, { blob })
        .catch((error) => deps.log.warn({ err: error, blob }, 'an artifact could not be processed'))
        .finally(() => underWay.delete(blob))
      underWay.set(blob, run)
    },
    async close() {
      await Promise.all(underWay.values())
    },
  }
}

/** Makes an artifact ready. Nothing is converted yet: it is served as it came. Decision: 9 (Conversion). */
async function finishProcessing({ db, store, changes }: ProcessingDeps, upload: Upload): Promise<void> {
  const row = await findUploadRow(db, upload)
  if (row?.state !== 'processing') return
  const mediaType = await sniff(await readHead(store, row.blob, row.received_bytes))
  const served = {
    served_blob: row.blob,
    served_bytes: row.received_bytes,
    media_type: mediaType,
    sniffed_type: mediaType,
    conversion_result: 'original',
    conversion_reason: 'There is no converter here: it is served as it was uploaded.',
  } as const
  if (await convertArtifact(db, row, served)) changes.announce(row.id)
}

async function readHead({ blobs }: GrowingStore, name: string, sizeBytes: number): Promise<Uint8Array> {
  if (sizeBytes === 0) return new Uint8Array()
  const head = await blobs.open(name, { start: 0, end: Math.min(HEAD_BYTES, sizeBytes) - 1 })
  return Buffer.concat(await head.toArray())
}
