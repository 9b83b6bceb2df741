/** The system programs the tests drive: what each is called, and the Debian package that brings it. */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Any one of `commands` will do; tests of an optional one are left out where it is missing. */
export const testPrograms = {
  chromium: {
    commands: ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'],
    debianPackage: 'chromium',
  },
  ffmpeg: { commands: ['ffmpeg'], debianPackage: 'ffmpeg' },
  bubblewrap: { commands: ['bwrap'], debianPackage: 'bubblewrap', isOptional: true },
}

/** Whether a file may be executed. */
export function canRun(path) {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The path of the first of these commands that is on PATH, or undefined. */
export function findCommand(commands) {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return commands.flatMap((command) => folders.map((folder) => join(folder, command))).find(canRun)
}
