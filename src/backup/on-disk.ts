/** Finds in a data directory the bytes that rows speak of. */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { ignoreMissing } from '../storage/folder.ts'
import { toEntryName } from './manifest.ts'
import type { ReferencedBlob } from './store.ts'

/** Where they lie, and as what; undefined when they are not there in full. An upload whose last byte has come may be whole already. */
export async function findBytes(
  dataDir: string,
  blob: ReferencedBlob,
): Promise<{ readonly path: string; readonly blob: ReferencedBlob } | undefined> {
  for (const one of [blob, { ...blob, uploadFence: undefined }]) {
    const path = join(dataDir, toEntryName(one))
    const found = await stat(path).catch(ignoreMissing)
    if (found === undefined) continue
    const isInFull =
      one.uploadFence === undefined ? found.size === blob.sizeBytes : found.size >= blob.sizeBytes
    return isInFull ? { path, blob: one } : undefined
  }
  return undefined
}
