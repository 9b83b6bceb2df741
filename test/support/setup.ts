/** Runs before every test file: a warning or an error that reaches the console fails the test it came from. */
import { afterAll, afterEach, vi } from 'vitest'

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

afterEach(assertQuietConsole)
afterAll(assertQuietConsole)
