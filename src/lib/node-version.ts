/** Which Node the service runs on. Nothing is imported here, so that one too old for the rest can read it and say so. */

/** What the tests run on, and what `engines` of the package says. */
export const OLDEST_NODE_MAJOR = 24

/** A sentence about a Node that is too old; undefined for one that is not. */
export function findNodeTrouble(version: string): string | undefined {
  if (Number.parseInt(version, 10) >= OLDEST_NODE_MAJOR) return undefined
  return `Parley needs Node ${OLDEST_NODE_MAJOR} or newer; this is ${version}.`
}
