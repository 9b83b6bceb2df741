/** Finds the system programs that tests need, and their Debian packages. */
import { accessSync, constants, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/**
 * The programs by name. Any of `commands` is sufficient; tests that need a missing optional program are
 * skipped.
 */
export const testPrograms = {
  chromium: {
    commands: ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'],
    debianPackage: 'chromium',
  },
  ffmpeg: { commands: ['ffmpeg'], debianPackage: 'ffmpeg' },
  bubblewrap: { commands: ['bwrap'], debianPackage: 'bubblewrap', isOptional: true },
  postgres: { commands: ['postgres'], debianPackage: 'postgresql' },
  pg_dump: { commands: ['pg_dump'], debianPackage: 'postgresql-client' },
  initdb: { commands: ['initdb'], debianPackage: 'postgresql' },
  redis: { commands: ['redis-server'], debianPackage: 'redis-server' },
  nginx: { commands: ['nginx'], debianPackage: 'nginx' },
  caddy: { commands: ['caddy'], debianPackage: 'caddy' },
  openssl: { commands: ['openssl'], debianPackage: 'openssl' },
}

/** Debian installs each PostgreSQL version in a separate folder that is not in PATH. */
const postgresVersions = '/usr/lib/postgresql'
/** Debian installs servers in this folder, which is in PATH only for root. */
const systemPrograms = '/usr/sbin'

export function canRun(path) {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Returns the path of the first command found in PATH or in Debian's server folders. */
export function findCommand(commands) {
  const folders = [...(process.env.PATH ?? '').split(delimiter), systemPrograms, ...listPostgresFolders()]
  return commands.flatMap((command) => folders.map((folder) => join(folder, command))).find(canRun)
}

function listPostgresFolders() {
  try {
    const versions = readdirSync(postgresVersions).sort((one, other) => Number(other) - Number(one))
    return versions.map((version) => join(postgresVersions, version, 'bin'))
  } catch {
    return []
  }
}
