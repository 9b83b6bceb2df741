/** Collects a service's log, so that tests can search it. */
import type { Logger } from 'pino'
import { createRedactedLog } from '../../src/telemetry/log.ts'
import { checkLine } from './log-leaks.ts'

/** Creates a debug logger like a service's, with its lines so far as JSON. */
export function createLineLog(): { log: Logger; lines: string[] } {
  const lines: string[] = []
  const write = (line: string) => {
    lines.push(line)
    checkLine(line)
  }
  return { log: createRedactedLog('debug', [], { write }), lines }
}
