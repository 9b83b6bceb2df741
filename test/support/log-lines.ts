/** Collects what a service logs, so that tests can look for what must and must not be in it. */
import type { Logger } from 'pino'
import { createRedactedLog } from '../../src/telemetry/log.ts'
import { checkLine } from './log-leaks.ts'

/** A logger on debug level, as a service has it, and its lines so far as JSON text. */
export function createLineLog(): { log: Logger; lines: string[] } {
  const lines: string[] = []
  const write = (line: string) => {
    lines.push(line)
    checkLine(line)
  }
  return { log: createRedactedLog('debug', [], { write }), lines }
}
