/** Writes log lines without blocking the process, and drops lines that cannot be written. */
import { write, writeSync } from 'node:fs'
import type { DestinationStream } from 'pino'
import { systemClock } from '../lib/clock.ts'

const MAX_PENDING_BYTES = 8 * 1024 ** 2
/** Milliseconds to wait before retrying a write to a pipe whose reader is slow. */
const RETRY_AFTER_MS = 50
const MAX_FLUSH_TRIES = 20

export interface LogOutput extends DestinationStream {
  /** Writes pending lines; waits at most a second for a slow reader. */
  flushSync(): void
}

/**
 * Replaces Pino's own destination, whose `flushSync` never returns while the disk is full and would stop the
 * service.
 */
export function createLogOutput(fd: number, maxPendingBytes = MAX_PENDING_BYTES): LogOutput {
  let pending: Buffer[] = []
  let pendingBytes = 0
  let isWriting = false
  let dropped = 0

  function add(line: string): void {
    const bytes = Buffer.from(line)
    pending.push(bytes)
    pendingBytes += bytes.length
  }

  function takePending(): Buffer {
    const bytes = Buffer.concat(pending)
    pending = []
    pendingBytes = 0
    return bytes
  }

  function writeNext(bytes: Buffer): void {
    isWriting = true
    write(fd, bytes, (error, written) => {
      if (isSlowReader(error)) {
        setTimeout(writeNext, RETRY_AFTER_MS, bytes)
        return
      }
      if (error !== null) dropped += countLines(bytes)
      else if (written < bytes.length) return writeNext(bytes.subarray(written))
      else if (dropped > 0) reportDropped()
      isWriting = false
      if (pending.length > 0) writeNext(takePending())
    })
  }

  function reportDropped(): void {
    const line = { level: 40, time: systemClock.now(), dropped, msg: 'log lines could not be written' }
    dropped = 0
    add(`${JSON.stringify(line)}\n`)
  }

  const output: LogOutput = {
    write(line) {
      if (pendingBytes >= maxPendingBytes) {
        dropped++
        return
      }
      add(line)
      if (!isWriting) writeNext(takePending())
    },
    flushSync() {
      let bytes = takePending()
      for (let tries = 0; bytes.length > 0 && tries < MAX_FLUSH_TRIES; ) {
        try {
          bytes = bytes.subarray(writeSync(fd, bytes))
        } catch (error) {
          if (!isSlowReader(error)) return
          tries++
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_AFTER_MS)
        }
      }
    },
  }
  process.on('exit', output.flushSync)
  return output
}

function isSlowReader(error: unknown): boolean {
  return (error as NodeJS.ErrnoException | null)?.code === 'EAGAIN'
}

function countLines(bytes: Buffer): number {
  return bytes.toString().split('\n').length - 1
}
