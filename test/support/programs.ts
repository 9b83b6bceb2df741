/** Finds system programs that tests need. */
import { findCommand, testPrograms } from '../../scripts/programs.mjs'

/** Returns a program's path. @throws Error if it is missing; the message names the package to install. */
export function getProgram(name: keyof typeof testPrograms): string {
  const { commands, debianPackage } = testPrograms[name]
  const path = findCommand(commands)
  if (path === undefined) {
    throw new Error(`This test needs ${name} (on Debian and Ubuntu: apt-get install ${debianPackage}).`)
  }
  return path
}
