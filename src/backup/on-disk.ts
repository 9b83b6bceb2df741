/** Finds in a data directory the bytes that rows speak of. */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { ignoreMissing } from '../storage/folder.ts'
import { toEntryName } from './manifest.ts'
import type { NeededBlob } from './store.ts'

/** Where they lie, and as what; undefined when they are not there in full. An upload whose last byte has come may be whole already. */
export async function findBytes(
  dataDir: string,
  blob: NeededBlob,
): Promise<{ readonly path: string; readonly blob: NeededBlob } | undefined> {
  for (const one of [blob, { ...blob, growingUnder: undefined }]) {
    const path = join(dataDir, toEntryName(one))
    const found = await stat(path).catch(ignoreMissing)
    if (found === undefined) continue
    const isInFull =
      one.growingUnder === undefined ? found.size === blob.sizeBytes : found.size >= blob.sizeBytes
    return isInFull ? { path, blob: one } : undefined
  }
  return undefined
}
