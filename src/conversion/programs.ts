/** Finds the system programs that conversions use. */
import { execFile } from 'node:child_process'
import { access, constants } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

const names = ['ffmpeg', 'ffprobe', 'bwrap', 'prlimit', 'setpriv', 'nice'] as const

type ProgramName = (typeof names)[number]

export type Programs = Readonly<Partial<Record<ProgramName, string>>>

const VERSION_MS = 10_000

/** Searches `searchPath` as a shell would, without running anything. */
export async function findPrograms(searchPath: string): Promise<Programs> {
  const folders = searchPath.split(delimiter).filter((folder) => folder !== '')
  const found = await Promise.all(names.map(async (name) => [name, await findIn(folders, name)] as const))
  return Object.fromEntries(found.filter(([, path]) => path !== undefined))
}

async function findIn(folders: readonly string[], name: string): Promise<string | undefined> {
  for (const folder of folders) {
    const path = join(folder, name)
    const isThere = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (isThere) return path
  }
  return undefined
}

export async function readVersion(path: string): Promise<string> {
  const word = /(ffmpeg|ffprobe)$/.test(path) ? '-version' : '--version'
  const { stdout } = await promisify(execFile)(path, [word], { timeout: VERSION_MS, env: {} })
  return /\d[\w.]*/.exec(stdout)?.[0] ?? 'unknown'
}
