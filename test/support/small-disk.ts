/** A real disk that is small: a file system in memory, mounted where only one process and its children see it. */
import { spawnSync } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { openDatabase } from '../../src/db/open.ts'

const own = ['unshare', process.getuid?.() === 0 ? '-m' : '-rm']

/** Why no such disk can be had here; undefined when it can. */
export function findDiskObstacle(): string | undefined {
  const [command = '', ...words] = [...own, 'sh', '-c', mountScript('1m'), '/mnt', 'true']
  const { status, stderr, error } = spawnSync(command, words, { encoding: 'utf8' })
  return status === 0 ? undefined : (error?.message ?? stderr)
}

/**
 * Makes a data directory in which the folder of artifacts is a disk of that size, to whoever is started with the words returned. The
 * database is there already, and not on it: no service makes one where other files lie.
 */
export async function prepareSmallDisk(dataDir: string, sizeMebibytes: number): Promise<string[]> {
  await (await openDatabase({ dataDir, role: 'server' })).close()
  const folder = join(dataDir, 'artifacts')
  await mkdir(folder, { mode: 0o700 })
  return [...own, 'sh', '-c', mountScript(`${sizeMebibytes}m`), folder]
}

const mountScript = (size: string) => `mount -t tmpfs -o size=${size},mode=700 tmpfs "$0" && exec "$@"`
