/** Writes files that survive a power failure, and recognizes file system errors. */
import { closeSync, openSync } from 'node:fs'
import { link, open, readFile, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Creates the file unless it exists, and returns the contents of the file on disk. Only one of several
 * concurrent writers succeeds. On file systems with hard links, readers never see a partial file. `draft`
 * must be in the same folder.
 */
export async function createFileOnce(path: string, text: string, draft: string): Promise<string> {
  try {
    await writeDurably(draft, text)
    await link(draft, path).catch(async (error: unknown) => {
      if (hasCode(error, 'EEXIST')) return
      if (!hasCode(error, ...linkless)) throw error
      await writeDurably(path, text).catch((second: unknown) => {
        if (!hasCode(second, 'EEXIST')) throw second
      })
    })
  } finally {
    await unlink(draft).catch(() => {})
  }
  await syncFolder(dirname(path))
  return (await readFile(path, 'utf8')).trim()
}

const linkless = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']

async function writeDurably(path: string, text: string): Promise<void> {
  await using file = await open(path, 'wx', 0o600)
  await file.writeFile(text)
  await file.sync()
}

/** Syncs the folder, so that new file names in it survive a power failure. */
export async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path)
  await folder.sync()
}

export function createPrivateFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  }
}

export function isMissing(error: unknown): boolean {
  return hasCode(error, 'ENOENT', 'ENOTDIR')
}

export function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code))
}
