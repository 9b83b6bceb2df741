/** Takes out of log lines what must not stand in any: keys, tokens, passwords, and whatever else the operator keeps secret. */
import type { Config } from '../config.ts'
import { withoutKeys } from '../without-keys.ts'

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
