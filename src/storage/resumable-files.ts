/** Names the files of active uploads and finds the current one: each writer has its own file, so that a stale writer cannot change the bytes of the next. */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { ignoreMissing } from './folder.ts'

/** The subfolder of active uploads. A start leaves it alone. */
export const RESUMABLE_FOLDER = 'growing'

/** A file that a crash left before it had all bytes of its source. */
const COPY_ENDING = '.copy'

export interface ResumableFile {
  readonly path: string
  /** The fence of the last writer; 0 for a file without a fence, which was restored or made by an old version, so no writer has it open. */
  readonly fence: number
}

export function toResumableName(name: string, fence: number): string {
  return fence === 0 ? name : `${name}.${fence}`
}

export function toCopyName(name: string, fence: number): string {
  return toResumableName(name, fence) + COPY_ENDING
}

/** The name of the blob that a file of the subfolder belongs to. */
export function toBlobName(file: string): string {
  return file.split('.', 1)[0] ?? file
}

/** The files of a blob, the current one first; without unfinished copies. */
export async function listResumableFiles(folder: string, name: string): Promise<ResumableFile[]> {
  const files: ResumableFile[] = []
  for (const file of (await readdir(folder).catch(ignoreMissing)) ?? []) {
    if (!file.startsWith(name)) continue
    const [, fence] = /^[^.]+(?:\.(\d+))?$/.exec(file) ?? []
    if (file === name || fence !== undefined)
      files.push({ path: join(folder, file), fence: Number(fence ?? 0) })
  }
  return files.sort((left, right) => right.fence - left.fence)
}

/** Finds the current file. `lastFence`, if known, saves a listing in most cases. */
export async function findResumableFile(
  folder: string,
  name: string,
  lastFence?: number,
): Promise<(ResumableFile & { readonly sizeBytes: number }) | undefined> {
  // A lease that wrote nothing has no file, so the last one may be that of the fence before.
  for (const fence of lastFence === undefined ? [] : [lastFence, lastFence - 1]) {
    if (fence < 1) break
    const found = await statFile({ path: join(folder, toResumableName(name, fence)), fence })
    if (found !== undefined) return found
  }
  for (const file of await listResumableFiles(folder, name)) {
    const found = await statFile(file)
    if (found !== undefined) return found
  }
  return undefined
}

async function statFile(file: ResumableFile) {
  const found = await stat(file.path).catch(ignoreMissing)
  return found && { ...file, sizeBytes: found.size }
}
