/** The system programs the tests drive: what each is called, and the Debian package that brings it. */
import { accessSync, constants, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Any one of `commands` will do; tests of an optional one are left out where it is missing. */
export const testPrograms = {
  chromium: {
    commands: ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'],
    debianPackage: 'chromium',
  },
  ffmpeg: { commands: ['ffmpeg'], debianPackage: 'ffmpeg' },
  bubblewrap: { commands: ['bwrap'], debianPackage: 'bubblewrap', isOptional: true },
  postgres: { commands: ['postgres'], debianPackage: 'postgresql' },
  initdb: { commands: ['initdb'], debianPackage: 'postgresql' },
  redis: { commands: ['redis-server'], debianPackage: 'redis-server' },
  nginx: { commands: ['nginx'], debianPackage: 'nginx' },
  caddy: { commands: ['caddy'], debianPackage: 'caddy' },
  openssl: { commands: ['openssl'], debianPackage: 'openssl' },
}

/** Debian keeps the programs of each version of PostgreSQL in a folder of its own, off PATH. */
const postgresVersions = '/usr/lib/postgresql'
/** And servers here, which is on root's PATH only. */
const systemPrograms = '/usr/sbin'

/** Whether a file may be executed. */
export function canRun(path) {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The path of the first of these commands that is on PATH, or where Debian puts servers; or undefined. */
export function findCommand(commands) {
  const folders = [...(process.env.PATH ?? '').split(delimiter), systemPrograms, ...listPostgresFolders()]
  return commands.flatMap((command) => folders.map((folder) => join(folder, command))).find(canRun)
}

/** Newest first. */
function listPostgresFolders() {
  try {
    const versions = readdirSync(postgresVersions).sort((one, other) => Number(other) - Number(one))
    return versions.map((version) => join(postgresVersions, version, 'bin'))
  } catch {
    return []
  }
}
