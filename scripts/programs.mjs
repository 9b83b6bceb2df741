/** The system programs that tests need, with their Debian packages. */
import { accessSync, constants, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** One of `commands` is sufficient; without an optional program its tests are skipped. */
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

/** Debian installs the programs of each PostgreSQL version in a folder that is not on PATH. */
const postgresVersions = '/usr/lib/postgresql'
/** Debian installs servers here, which is only on root's PATH. */
const systemPrograms = '/usr/sbin'

export function canRun(path) {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The path of the first command that is found on PATH or in Debian's folders for servers. */
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
