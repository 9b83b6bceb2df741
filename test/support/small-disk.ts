/** Mounts a small in-memory file system that only a test's server can see. */
import { spawnSync } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { openDatabase } from '../../src/db/open.ts'

const own = ['unshare', process.getuid?.() === 0 ? '-m' : '-rm']

/** Returns the error if this machine cannot mount a file system, or undefined if it can. */
export function findMountError(): string | undefined {
  const [command = '', ...words] = [...own, 'sh', '-c', mountScript('1m'), '/mnt', 'true']
  const { status, stderr, error } = spawnSync(command, words, { encoding: 'utf8' })
  return status === 0 ? undefined : (error?.message ?? stderr)
}

/**
 * Creates a data directory. Returns a command prefix that mounts a file system of this size as its artifacts
 * folder.
 */
export async function prepareSmallDisk(dataDir: string, sizeMebibytes: number): Promise<string[]> {
  await (await openDatabase({ dataDir, role: 'server' })).close()
  const folder = join(dataDir, 'artifacts')
  await mkdir(folder, { mode: 0o700 })
  return [...own, 'sh', '-c', mountScript(`${sizeMebibytes}m`), folder]
}

const mountScript = (size: string) => `mount -t tmpfs -o size=${size},mode=700 tmpfs "$0" && exec "$@"`
