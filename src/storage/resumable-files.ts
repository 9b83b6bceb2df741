/**
 * Names active uploads' files and finds the current one. Each writer has a separate file, so that a stale
 * writer cannot change the next writer's bytes.
 */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { ignoreMissing } from './folder.ts'

/** The subfolder for active uploads. Server starts do not delete its files. */
export const RESUMABLE_FOLDER = 'growing'

/** Suffix of a file that is still being copied, or that a crash left incomplete. */
const COPY_ENDING = '.copy'

export interface ResumableFile {
  readonly path: string
  /**
   * The last writer's fence. It is 0 if the file comes from a backup or an older version of Parley; no writer
   * has such a file open.
   */
  readonly fence: number
}

export function toResumableName(name: string, fence: number): string {
  return fence === 0 ? name : `${name}.${fence}`
}

export function toCopyName(name: string, fence: number): string {
  return toResumableName(name, fence) + COPY_ENDING
}

export function toBlobName(file: string): string {
  return file.split('.', 1)[0] ?? file
}

/** Lists a blob's files, the current one first, without unfinished copies. */
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

/** Finds the current file; with `lastFence`, usually without listing the folder. */
export async function findResumableFile(
  folder: string,
  name: string,
  lastFence?: number,
): Promise<(ResumableFile & { readonly sizeBytes: number }) | undefined> {
  // Tries the previous fence too, because a lease that wrote nothing has no file.
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
