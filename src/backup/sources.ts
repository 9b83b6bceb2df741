/**
 * Reads a backup's blobs from a data directory, where they can be pinned against deletion, or from a bucket.
 */
import { join } from 'node:path'
import { ServiceError } from '../lib/errors.ts'
import { type ResumableStore, wholeOf } from '../storage/blobs.ts'
import { PinnedBlobs } from '../storage/pins.ts'
import { openBucketStores } from './copy-to-bucket.ts'
import type { Dependencies } from './dependencies.ts'
import { toEntryName } from './manifest.ts'
import type { ReferencedBlob, StoreName } from './store.ts'
import type { Entry } from './tar.ts'

/**
 * A `pinned` blob is kept until the backup ends. An `Entry` must be written immediately. An `unfinished`
 * upload cannot be read yet.
 */
export type Taken = 'pinned' | 'missing' | 'unfinished' | Entry

export interface ByteSource {
  readonly isPinning: boolean
  take(blob: ReferencedBlob): Promise<Taken>
  open(blob: ReferencedBlob): AsyncIterable<Uint8Array>
  close(): Promise<void>
}

export async function openByteSource(deps: Dependencies): Promise<ByteSource> {
  const { s3, dataDir } = deps.config
  return s3 === undefined ? openFolderSource(dataDir) : openBucketSource(await openBucketStores(deps))
}

async function openFolderSource(dataDir: string): Promise<ByteSource> {
  const pins = {
    files: new PinnedBlobs(join(dataDir, 'files')),
    artifacts: new PinnedBlobs(join(dataDir, 'artifacts')),
  }
  const release = async () => {
    for (const pin of Object.values(pins)) await pin.release()
  }
  await release()
  return {
    isPinning: true,
    take: async ({ store, name, sizeBytes, uploadFence }) =>
      (await pins[store].take(name, sizeBytes, uploadFence)) ? 'pinned' : 'missing',
    open: ({ store, name, sizeBytes }) => pins[store].open(name, sizeBytes),
    close: release,
  }
}

function openBucketSource(stores: Readonly<Record<StoreName, ResumableStore>>): ByteSource {
  return {
    isPinning: false,
    async take(blob) {
      const { store, name, sizeBytes, uploadFence } = blob
      try {
        const bytes = await stores[store].blobs.open(name, wholeOf(sizeBytes))
        return { name: toEntryName({ ...blob, uploadFence: undefined }), sizeBytes, bytes }
      } catch (error) {
        // An unreachable bucket does not mean that the blob is missing.
        if (error instanceof ServiceError) throw error
        return uploadFence === undefined ? 'missing' : 'unfinished'
      }
    },
    open: ({ name }) => {
      throw new Error(`the backup does not pin ${name}`)
    },
    async close() {
      await Promise.all(Object.values(stores).map(({ blobs }) => blobs.close()))
    },
  }
}
