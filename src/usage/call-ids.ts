/** Creates the ids of calls. */

/** Number of digits for the time in call ids; sufficient until the year 33658. */
const TIME_DIGITS = 15

/** Creates ids that sort by the call's start; they are unique if each process has a different name. */
export function createCallIds(processName: string): (startedAtMs: number) => string {
  let last = 0
  return (startedAtMs) => {
    last += 1
    return `${firstCallIdAt(startedAtMs)}-${processName}-${last.toString(36)}`
  }
}

/** Returns an id that sorts before all calls that begin at `ms` or later. */
export function firstCallIdAt(ms: number): string {
  return String(Math.floor(ms)).padStart(TIME_DIGITS, '0')
}
