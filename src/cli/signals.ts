/** The signals that tell a server to stop, heard before there is one: its supervisor may change its mind at any moment. */
import cluster from 'node:cluster'
import { printNotice } from './output.ts'

type OnStop = (signal: NodeJS.Signals) => void

/** Nothing has begun yet that would have to be brought to an end. A worker leaves it to the first process, which heard the same. */
let onStop: OnStop = cluster.isWorker ? () => {} : () => process.exit(0)

/** Begins to hear the signals; until somebody else takes them the process ends in order. Decision: 2 (`serve`). */
export function hearStopSignals(): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => onStop(signal))
}

/** Takes the signals from now on. */
export function takeStopSignals(taker: OnStop): void {
  onStop = taker
}

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
