/** Commands that clean up when somebody stops them. */
import { printNotice } from './output.ts'

/** Runs it with a signal that aborts on SIGINT and SIGTERM; a second one ends the process at once. */
export async function untilInterrupted(run: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const interruption = new AbortController()
  const onSignal = (name: NodeJS.Signals) => {
    for (const signal of signals) process.off(signal, onSignal)
    printNotice(`${name}: stopping; nothing of it stays`)
    interruption.abort()
  }
  for (const signal of signals) process.on(signal, onSignal)
  try {
    await run(interruption.signal)
  } catch (error) {
    if (!interruption.signal.aborted) throw error
    process.exitCode = 1
  } finally {
    for (const signal of signals) process.off(signal, onSignal)
  }
}

const signals = ['SIGINT', 'SIGTERM'] as const
