/** Mounts a small disk: a file system in memory that only one process and its children see. */
import { spawnSync } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { openDatabase } from '../../src/db/open.ts'

const own = ['unshare', process.getuid?.() === 0 ? '-m' : '-rm']

/** Returns why no small disk can be mounted here, or undefined if it can. */
export function findDiskObstacle(): string | undefined {
  const [command = '', ...words] = [...own, 'sh', '-c', mountScript('1m'), '/mnt', 'true']
  const { status, stderr, error } = spawnSync(command, words, { encoding: 'utf8' })
  return status === 0 ? undefined : (error?.message ?? stderr)
}

/**
 * Prepares a data directory for a process that starts with the returned words: its artifacts folder is a disk of
 * `sizeMebibytes`. The database already exists, because a service creates none next to other files.
 */
export async function prepareSmallDisk(dataDir: string, sizeMebibytes: number): Promise<string[]> {
  await (await openDatabase({ dataDir, role: 'server' })).close()
  const folder = join(dataDir, 'artifacts')
  await mkdir(folder, { mode: 0o700 })
  return [...own, 'sh', '-c', mountScript(`${sizeMebibytes}m`), folder]
}

const mountScript = (size: string) => `mount -t tmpfs -o size=${size},mode=700 tmpfs "$0" && exec "$@"`
