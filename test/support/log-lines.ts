/** Collects a service's log lines for tests. */
import type { Logger } from 'pino'
import { createRedactedLog } from '../../src/telemetry/log.ts'
import { checkLine } from './log-leaks.ts'

/** Creates a logger at debug level, and the list to which it appends its JSON lines. */
export function createLineLog(): { log: Logger; lines: string[] } {
  const lines: string[] = []
  const write = (line: string) => {
    lines.push(line)
    checkLine(line)
  }
  return { log: createRedactedLog('debug', [], { write }), lines }
}
