/** Collects what a service logs, so that tests can look for what must and must not be in it. */
import { type Logger, pino } from 'pino'

/** A logger on debug level, and its lines so far as JSON text. */
export function createLineLog(): { log: Logger; lines: string[] } {
  const lines: string[] = []
  return { log: pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) }), lines }
}
