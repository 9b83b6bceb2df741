/** The log: JSON lines, in which no secret stands and nothing that anybody has said. Security: 2.13. */
import { type DestinationStream, type Logger, pino } from 'pino'
import type { Config } from '../config.ts'
import { createRedaction, listSecrets } from './redaction.ts'

/** Causes that are told of an error. */
const MOST_CAUSES = 5

/** Fields whose value is not written, wherever in a line's object one of them stands. */
const secretFields = ['authorization', 'cookie', 'set-cookie', 'token', 'password', 'apiKey', 'secret']

/** The log of a service. Lines go to standard error: standard output is for what a person or a script asked for. */
export function createLog(config: Config): Logger {
  return createRedactedLog(config.logLevel, listSecrets(config), pino.destination(2))
}

/** A log without these secrets, and without anything that looks like one. */
export function createRedactedLog(
  level: Config['logLevel'],
  secrets: readonly string[],
  destination: DestinationStream,
): Logger {
  const redact = createRedaction(secrets)
  return pino(
    {
      level,
      base: null,
      serializers: { err: (error: unknown) => describeError(error) },
      redact: {
        paths: secretFields.flatMap((field) => [`["${field}"]`, `*["${field}"]`, `*.*["${field}"]`]),
        censor: '…',
      },
      hooks: { streamWrite: redact },
    },
    destination,
  )
}

/** What a line says of an error. Whatever else an error holds may be what somebody said. */
export function describeError(error: unknown, depth = 0): object | string | undefined {
  if (error === undefined || error === null) return undefined
  if (!(error instanceof Error)) return `thrown: ${typeof error}`
  const { name, cause, stack = '' } = error
  return {
    type: name,
    message: messageOf(error),
    code: codeOf(error),
    // Its first lines are the message once more.
    stack: stack
      .split('\n')
      .filter((line) => /^\s+at /.test(line))
      .join('\n'),
    cause: depth < MOST_CAUSES ? describeError(cause, depth + 1) : undefined,
  }
}

/** Parsers quote what they could not read. */
function messageOf({ name, message }: Error): string {
  return name === 'SyntaxError' ? 'the text could not be read' : message
}

function codeOf(error: Error): string | number | undefined {
  const { code } = error as { readonly code?: unknown }
  return typeof code === 'string' || typeof code === 'number' ? code : undefined
}
