/** Writes the log as JSON lines, without secrets or conversation content. */
import { type DestinationStream, type Logger, pino } from 'pino'
import type { Config } from '../config/config.ts'
import { withoutKeys } from '../lib/api-key.ts'
import { createLogOutput, type LogOutput } from './log-output.ts'

const MOST_CAUSES = 5

/** Fields whose values are redacted, up to two levels deep. */
const secretFields = ['authorization', 'cookie', 'set-cookie', 'token', 'password', 'apiKey', 'secret']

/** Writes to standard error, because commands write their results to standard output. */
export function createLog(config: Config): Logger {
  return createRedactedLog(config.logLevel, listSecrets(config), shareStandardError())
}

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

/** Selects an error's fields for the log; other fields could contain conversation content. */
export function describeError(error: unknown, depth = 0): object | string | undefined {
  if (error === undefined || error === null) return undefined
  if (!(error instanceof Error)) return `thrown: ${typeof error}`
  const { name, cause, stack = '' } = error
  return {
    type: name,
    message: messageOf(error),
    code: codeOf(error),
    // Omits the lines of the stack that repeat the message.
    stack: stack
      .split('\n')
      .filter((line) => /^\s+at /.test(line))
      .join('\n'),
    cause: depth < MOST_CAUSES ? describeError(cause, depth + 1) : undefined,
  }
}

/** Hides parsers' messages, which quote their input. */
function messageOf({ name, message }: Error): string {
  return name === 'SyntaxError' ? 'the text could not be read' : message
}

function codeOf(error: Error): string | number | undefined {
  const { code } = error as { readonly code?: unknown }
  return typeof code === 'string' || typeof code === 'number' ? code : undefined
}

/** Shorter secrets are not redacted, because they could match ordinary words. */
const SHORTEST_SECRET = 8

/** Patterns of secrets; `$1` is the part that is not secret. */
const shapes: readonly RegExp[] = [
  /(\bBearer\s+)[^\s"',;\\]{6,}/gi,
  /(\bBasic\s+)[A-Za-z0-9+/=]{12,}/g,
  /(\bsk-)[\w*.-]{6,}/g,
  // A password in a URL.
  /(:\/\/[^\s:@/"\\]*:)[^\s@/"\\]+(?=@)/g,
  /([?&](?:token|key|signature)=)[^&\s"\\]+/gi,
  /(X-Amz-(?:Signature|Credential|Security-Token)=)[^&\s"\\]+/gi,
  /(\/sign-in#)[\w-]+/g,
  /(parley_session=)[\w-]+/g,
]

/** Secrets that the process learned after it created its log, such as the keys of new providers. */
const learned = new Set<string>()
let learnedPattern: RegExp | undefined

/** Redacts a secret in all log lines that the process writes after this call. */
export function redactInLogs(secret: string): void {
  if (learned.has(secret)) return
  learned.add(secret)
  learnedPattern = toPattern([...learned])
}

/** Redacts the given secrets, and everything that looks like a secret, in a log line. */
function createRedaction(secrets: readonly string[]): (line: string) => string {
  const all = toPattern(secrets)
  return (line) => {
    const masked = all === undefined ? line : line.replace(all, '…')
    const hidden = learnedPattern === undefined ? masked : masked.replace(learnedPattern, '…')
    return shapes.reduce((text, shape) => text.replace(shape, '$1…'), withoutKeys(hidden))
  }
}

function toPattern(secrets: readonly string[]): RegExp | undefined {
  // Escapes secrets as in JSON; the longest comes first, because one may be a prefix of another.
  const known = secrets
    .filter((secret) => secret.length >= SHORTEST_SECRET)
    .map((secret) =>
      JSON.stringify(secret)
        .slice(1, -1)
        .replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'),
    )
    .sort((one, other) => other.length - one.length)
  return known.length === 0 ? undefined : new RegExp(known.join('|'), 'g')
}

export function listSecrets(config: Config): string[] {
  const { databaseUrl, redisUrl, s3, forwardedAuth, providers, mcp, tracing } = config
  const addresses = [databaseUrl, redisUrl].flatMap((url) => (url === undefined ? [] : passwordsOf(url)))
  const ofProviders = providers.map((provider) => ('apiKey' in provider ? provider.apiKey : undefined))
  const ofMcp = mcp.flatMap((server) => Object.values(server.kind === 'http' ? server.headers : server.env))
  const all = [
    ...[config.secret, ...config.formerSecrets, config.parentKey, config.metricsToken],
    ...[s3?.credentials?.secretAccessKey, s3?.credentials?.sessionToken, forwardedAuth?.proxySecret],
    ...Object.values(tracing?.headers ?? {}),
    ...[...addresses, ...ofProviders, ...ofMcp, ...config.webhooks.ofOperator.map(({ secret }) => secret)],
  ]
  return all.filter((secret) => secret !== undefined)
}

function passwordsOf(url: string): string[] {
  const { password = '' } = URL.parse(url) ?? {}
  try {
    return [password, decodeURIComponent(password)]
  } catch {
    return [password]
  }
}

let standardError: LogOutput | undefined

/**
 * Returns the process's only output to standard error, because each output adds a listener to the process.
 */
function shareStandardError(): LogOutput {
  standardError ??= createLogOutput(2)
  return standardError
}
