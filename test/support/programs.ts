/** Finds the system programs that some tests use; `npm test` installs them where possible. */
import { findCommand, testPrograms } from '../../scripts/programs.mjs'

/** Returns the path of a program on this machine. @throws Error naming the package to install. */
export function getProgram(name: keyof typeof testPrograms): string {
  const { commands, debianPackage } = testPrograms[name]
  const path = findCommand(commands)
  if (path === undefined) {
    throw new Error(`This test needs ${name} (on Debian and Ubuntu: apt-get install ${debianPackage}).`)
  }
  return path
}
