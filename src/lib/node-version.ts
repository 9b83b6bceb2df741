/**
 * Checks the Node version. Imports nothing, so that an older Node can load this file and report the error.
 */

export const OLDEST_NODE_MAJOR = 24

export function findNodeTrouble(version: string): string | undefined {
  if (Number.parseInt(version, 10) >= OLDEST_NODE_MAJOR) return undefined
  return `Parley needs Node ${OLDEST_NODE_MAJOR} or newer; this is ${version}.`
}
