/**
 * Runs before every test file: a warning or an error that reaches the console fails the test it came from, and so does a log line with a
 * key, a token or a message in it.
 */
import { afterAll, afterEach, vi } from 'vitest'
import { takeLeaks, watchMessages } from './log-leaks.ts'

const strayLines: string[] = []

for (const method of ['error', 'warn'] as const) {
  vi.spyOn(console, method).mockImplementation((...values: unknown[]) => {
    strayLines.push(`console.${method}: ${values.map(String).join(' ')}`)
  })
}

function assertQuietConsole(): void {
  const lines = strayLines.splice(0)
  if (lines.length > 0) throw new Error(`Something wrote to the console.\n${lines.join('\n')}`)
}

/** Several test files may share a process. */
const watching = globalThis as { isWatchedForLeaks?: true }
if (watching.isWatchedForLeaks === undefined) watchMessages()
watching.isWatchedForLeaks = true

function assertDiscreetLog(): void {
  const leaks = takeLeaks()
  if (leaks.length > 0) throw new Error(`A log line holds what it must not.\n${leaks.join('\n')}`)
}

for (const assertNothing of [assertQuietConsole, assertDiscreetLog]) {
  afterEach(assertNothing)
  afterAll(assertNothing)
}
