/** Where a backup takes bytes from: the data directory, where it can hold on to them, or a bucket, where it cannot. */
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import { ServiceError } from '../lib/errors.ts'
import { type GrowingStore, wholeOf } from '../storage/blobs.ts'
import { Hold } from '../storage/pins.ts'
import { openBucketStores } from './copy-to-bucket.ts'
import type { Dependencies } from './dependencies.ts'
import { toEntryName } from './manifest.ts'
import type { NeededBlob, StoreName } from './store.ts'
import type { Entry } from './tar-writer.ts'

/**
 * What became of a blob that was asked for: it is `held` until the end, is handed over as an entry that must be written now, is
 * `missing`, or is `unfinished` and cannot be read before its last byte has come.
 */
export type Taken = 'held' | 'missing' | 'unfinished' | Entry

export interface ByteSource {
  /** Whether what it holds stays, whatever is deleted; then it is quick to take, too. */
  readonly isHolding: boolean
  take(blob: NeededBlob): Promise<Taken>
  /** A blob that is held. */
  open(blob: NeededBlob): AsyncIterable<Uint8Array>
  /** Lets go of everything. */
  close(): Promise<void>
}

type SourceDeps = Pick<Dependencies, 'db' | 'clock' | 'log'> & { readonly config: Config }

/** @throws StartupError when the bucket cannot be used. */
export async function openByteSource(deps: SourceDeps): Promise<ByteSource> {
  const { s3, dataDir } = deps.config
  return s3 === undefined ? openFolderSource(dataDir) : openBucketSource(await openBucketStores(deps))
}

async function openFolderSource(dataDir: string): Promise<ByteSource> {
  const holds = { files: new Hold(join(dataDir, 'files')), artifacts: new Hold(join(dataDir, 'artifacts')) }
  const release = async () => {
    for (const hold of Object.values(holds)) await hold.release()
  }
  // Of one that was killed.
  await release()
  return {
    isHolding: true,
    take: async ({ store, name, sizeBytes }) =>
      (await holds[store].take(name, sizeBytes)) ? 'held' : 'missing',
    open: ({ store, name, sizeBytes }) => holds[store].open(name, sizeBytes),
    close: release,
  }
}

function openBucketSource(stores: Readonly<Record<StoreName, GrowingStore>>): ByteSource {
  async function take(blob: NeededBlob): Promise<Taken> {
    const { store, name, sizeBytes, growingUnder } = blob
    try {
      const bytes = await stores[store].blobs.open(name, wholeOf(sizeBytes))
      return { name: toEntryName({ ...blob, growingUnder: undefined }), sizeBytes, bytes }
    } catch (error) {
      // The bucket is away, which is no answer.
      if (error instanceof ServiceError) throw error
      return growingUnder === undefined ? 'missing' : 'unfinished'
    }
  }
  return {
    isHolding: false,
    take,
    open: ({ name }) => {
      throw new Error(`${name} is not held`)
    },
    async close() {
      await Promise.all(Object.values(stores).map(({ blobs }) => blobs.close()))
    },
  }
}
