/** Makes tests fail if they write errors or warnings to the console, or secrets or messages to the log. */
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
  if (lines.length > 0) throw new Error(`The test wrote to the console.\n${lines.join('\n')}`)
}

/** Uses a global flag, because several test files can run in the same process. */
const watching = globalThis as { isWatchedForLeaks?: true }
if (watching.isWatchedForLeaks === undefined) watchMessages()
watching.isWatchedForLeaks = true

function assertDiscreetLog(): void {
  const leaks = takeLeaks()
  if (leaks.length > 0) throw new Error(`A log line contains a secret or a message.\n${leaks.join('\n')}`)
}

for (const assertNothing of [assertQuietConsole, assertDiscreetLog]) {
  afterEach(assertNothing)
  afterAll(assertNothing)
}
