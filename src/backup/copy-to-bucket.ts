/** Copies a data directory's blobs to an S3 bucket. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { S3Config } from '../config/config.ts'
import { getInstallationId } from '../db/installation.ts'
import type { ConversationDb } from '../db/open.ts'
import { StartupError } from '../lib/errors.ts'
import { countingExternalBytes } from '../lib/external-memory.ts'
import { type ResumableStore, wholeOf } from '../storage/blobs.ts'
import { ignoreMissing } from '../storage/folder.ts'
import { findResumableFile, RESUMABLE_FOLDER } from '../storage/resumable-files.ts'
import type { Dependencies } from './dependencies.ts'
import { toEntryName } from './manifest.ts'
import { listReferencedBlobs, type ReferencedBlob, type StoreName } from './store.ts'

/**
 * Number of concurrent copies. A small blob needs four S3 requests, which spend most of their time waiting.
 */
const AT_ONCE = 8

/**
 * Opens the bucket's stores without deleting anything, so that servers may be running.
 * @throws StartupError if the bucket is unusable or belongs to another installation.
 */
export async function openBucketStores(deps: Dependencies): Promise<Record<StoreName, ResumableStore>> {
  const { config, db, clock, log } = deps
  const { openS3ResumableStore } = await import('../storage/s3.ts')
  const installationId = await getInstallationId({ db, clock })
  const { maxFileBytes, maxUploadBytes } = config.limits
  const options = { installationId, clock, log, maxBytes: Math.max(maxFileBytes, maxUploadBytes) }
  const s3 = config.s3 as S3Config
  const files = await openS3ResumableStore(s3, { ...options, name: 'files' })
  try {
    return { files, artifacts: await openS3ResumableStore(s3, { ...options, name: 'artifacts' }) }
  } catch (error) {
    await files.blobs.close()
    throw error
  }
}

export interface CopiedBytes {
  readonly copied: number
  readonly copiedBytes: number
  readonly lost: readonly string[]
}

/**
 * Copies all referenced blobs, and verifies them where S3 allows reading them back. Safe to repeat.
 * @throws StartupError if the bucket is unusable or returns different bytes.
 */
export async function copyIntoBucket(
  deps: Dependencies,
  dataDir: string,
  conversations: ConversationDb | undefined,
): Promise<CopiedBytes> {
  const stores = await openBucketStores(deps)
  const lost: string[] = []
  let [copied, copiedBytes] = [0, 0]
  async function copyOne(blob: ReferencedBlob): Promise<void> {
    const store = stores[blob.store]
    const found = await findBytes(dataDir, blob)
    if (found === undefined) {
      const sizeBytes = await store.resumable.findSize(blob.name)
      if (sizeBytes === undefined || sizeBytes < blob.sizeBytes) lost.push(blob.name)
      return
    }
    await copyBlob(store, found.blob, found.path)
    copied += 1
    copiedBytes += blob.sizeBytes
  }
  try {
    await forEachAtOnce(AT_ONCE, listReferencedBlobs(deps.db, conversations), copyOne)
  } finally {
    await Promise.all(Object.values(stores).map(({ blobs }) => blobs.close()))
  }
  return { copied, copiedBytes, lost }
}

/**
 * Runs up to `count` tasks at a time. After a failure, it starts no more tasks and rejects when the running
 * ones have finished.
 */
async function forEachAtOnce<T>(
  count: number,
  items: AsyncIterable<T>,
  run: (item: T) => Promise<void>,
): Promise<void> {
  const iterator = items[Symbol.asyncIterator]()
  let isFailed = false
  async function work(): Promise<void> {
    for (let next = await iterator.next(); next.done !== true && !isFailed; next = await iterator.next())
      await run(next.value)
  }
  const workers = Array.from({ length: count }, () =>
    work().catch((error) => {
      isFailed = true
      throw error
    }),
  )
  const failed = (await Promise.allSettled(workers)).find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') throw failed.reason
}

async function copyBlob(store: ResumableStore, blob: ReferencedBlob, path: string): Promise<void> {
  const { name, sizeBytes, uploadFence } = blob
  const hash = createHash('sha256')
  async function* readBytes(): AsyncIterable<Uint8Array> {
    if (sizeBytes === 0) return
    // Omits bytes at the end of an upload's file that were never acknowledged.
    for await (const chunk of createReadStream(path, { end: sizeBytes - 1 })) {
      hash.update(chunk)
      yield chunk
    }
  }
  if (uploadFence !== undefined) return copyActiveUpload(store, blob, uploadFence, readBytes())
  const staged = await store.blobs.stage(readBytes(), sizeBytes, name)
  await staged.commit()
  const readBack = createHash('sha256')
  for await (const chunk of countingExternalBytes(await store.blobs.open(name, wholeOf(sizeBytes))))
    readBack.update(chunk)
  if (readBack.digest('hex') !== hash.digest('hex')) throw notTheSame(name)
}

/** S3 cannot read back the parts of an active upload, so only their total size is verified. */
async function copyActiveUpload(
  { resumable }: ResumableStore,
  { name, sizeBytes }: ReferencedBlob,
  fence: number,
  bytes: AsyncIterable<Uint8Array>,
): Promise<void> {
  const blob = await resumable.extend(name, 0, fence)
  if (blob === undefined) throw notTheSame(name)
  try {
    for await (const chunk of bytes) await blob.append([chunk])
    await blob.sync(async () => {})
  } finally {
    await blob.close()
  }
  if ((await resumable.findSize(name)) !== sizeBytes) throw notTheSame(name)
}

function notTheSame(name: string): StartupError {
  return new StartupError(
    `The bucket returned different bytes for ${name} than were sent; check the bucket's settings and try again.`,
  )
}

/**
 * Finds a blob's file, or returns undefined if it is missing or incomplete. Also finds an upload that was
 * committed before its row was updated.
 */
export async function findBytes(
  dataDir: string,
  blob: ReferencedBlob,
): Promise<{ readonly path: string; readonly blob: ReferencedBlob } | undefined> {
  const { store, name, sizeBytes, uploadFence } = blob
  if (uploadFence !== undefined) {
    const active = await findResumableFile(join(dataDir, store, RESUMABLE_FOLDER), name, uploadFence)
    if (active !== undefined) return active.sizeBytes >= sizeBytes ? { path: active.path, blob } : undefined
  }
  const committed = { ...blob, uploadFence: undefined }
  const path = join(dataDir, toEntryName(committed))
  const found = await stat(path).catch(ignoreMissing)
  return found?.size === sizeBytes ? { path, blob: committed } : undefined
}
