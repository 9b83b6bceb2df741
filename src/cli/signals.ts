/**
 * Handles the signals that stop a command. Imported first, because signals can arrive while other code is
 * still loading.
 */
import cluster from 'node:cluster'
import { printNotice } from './output.ts'

type StopHandler = (signal: NodeJS.Signals) => void

const signals = ['SIGTERM', 'SIGINT'] as const

/**
 * The default handler exits immediately, because nothing has started yet. Workers ignore signals, because the
 * primary process stops them.
 */
let handler: StopHandler = cluster.isWorker ? () => {} : () => process.exit(0)

export function listenForStopSignals(): void {
  for (const signal of signals) process.on(signal, () => handler(signal))
}

export function setStopHandler(onStop: StopHandler): void {
  handler = onStop
}

export function printStopping(signal: NodeJS.Signals): void {
  printNotice(`${signal} received: finishing open requests. Press Ctrl-C again to quit now.`)
}

/**
 * Calls `run` with a signal that aborts on SIGTERM or SIGINT. A second SIGTERM or SIGINT exits immediately.
 */
export async function runInterruptible(run: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const interruption = new AbortController()
  const stopListening = () => {
    for (const signal of signals) process.off(signal, onSignal)
  }
  const onSignal = (signal: NodeJS.Signals) => {
    stopListening()
    printNotice(`${signal} received: cancelling and cleaning up.`)
    interruption.abort()
  }
  for (const signal of signals) process.on(signal, onSignal)
  try {
    await run(interruption.signal)
  } catch (error) {
    if (!interruption.signal.aborted) throw error
    process.exitCode = 1
  } finally {
    stopListening()
  }
}
