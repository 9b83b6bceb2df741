/** The log: JSON lines, in which no secret stands and nothing that anybody has said. Security: 2.13. */
import { type DestinationStream, type Logger, pino } from 'pino'
import type { Config } from '../config/config.ts'
import { withoutKeys } from '../lib/api-key.ts'

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

/** Shorter ones are found in too many words that are none. */
const SHORTEST_SECRET = 8

/** What looks like a secret, wherever it stands; `$1` is what may stay of it. */
const shapes: readonly RegExp[] = [
  /(\bBearer\s+)[^\s"',;\\]{6,}/gi,
  /(\bBasic\s+)[A-Za-z0-9+/=]{12,}/g,
  /(\bsk-)[\w*.-]{6,}/g,
  // The password in an address.
  /(:\/\/[^\s:@/"\\]*:)[^\s@/"\\]+(?=@)/g,
  /([?&](?:token|key|signature)=)[^&\s"\\]+/gi,
  /(X-Amz-(?:Signature|Credential|Security-Token)=)[^&\s"\\]+/gi,
  /(\/sign-in#)[\w-]+/g,
  /(parley_session=)[\w-]+/g,
]

/** Blots out secrets in a line of the log: those that look like one, and these. Security: 2.13. */
export function createRedaction(secrets: readonly string[]): (line: string) => string {
  // As they stand in JSON, the longer ones first: one may be the beginning of another.
  const known = secrets
    .filter((secret) => secret.length >= SHORTEST_SECRET)
    .map((secret) =>
      JSON.stringify(secret)
        .slice(1, -1)
        .replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'),
    )
    .sort((one, other) => other.length - one.length)
  const all = known.length === 0 ? undefined : new RegExp(known.join('|'), 'g')
  return (line) => {
    const masked = all === undefined ? line : line.replace(all, '…')
    return shapes.reduce((text, shape) => text.replace(shape, '$1…'), withoutKeys(masked))
  }
}

/** Everything in the settings that nobody else should read. */
export function listSecrets(config: Config): string[] {
  const { databaseUrl, redisUrl, s3, forwardedAuth, providers, mcp, tracing } = config
  const addresses = [databaseUrl, redisUrl].flatMap((url) => (url === undefined ? [] : passwordsOf(url)))
  const ofProviders = providers.map((provider) => (provider.kind === 'gateway' ? provider.apiKey : undefined))
  const ofMcp = mcp.flatMap((server) => Object.values(server.kind === 'http' ? server.headers : server.env))
  const all = [
    ...[config.secret, ...config.formerSecrets, config.parentKey, config.metricsToken],
    ...[s3?.credentials?.secretAccessKey, s3?.credentials?.sessionToken, forwardedAuth?.proxySecret],
    ...Object.values(tracing?.headers ?? {}),
    ...[...addresses, ...ofProviders, ...ofMcp],
  ]
  return all.filter((secret) => secret !== undefined)
}

/** As written, and as meant. */
function passwordsOf(url: string): string[] {
  const { password = '' } = URL.parse(url) ?? {}
  try {
    return [password, decodeURIComponent(password)]
  } catch {
    return [password]
  }
}
