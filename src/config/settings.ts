/**
 * Defines every environment variable that the service reads: its type, default and help text. `npm run
 * settings` generates `.env.example` and `docs/configuration.md` from it.
 */
import { z } from 'zod'
import { conversations, limits, times, uploads } from './limit-settings.ts'
import {
  addressBlockList,
  bearerToken,
  emailList,
  flag,
  fraction,
  gatewayUrl,
  headerList,
  headerName,
  hostList,
  httpUrlSuchAs,
  integer,
  LOCAL_URL,
  localContext,
  localThreads,
  localUrl,
  matching,
  oneOf,
  originList,
  parentKey,
  path,
  postgresUrl,
  printable,
  redisUrl,
  seconds,
  secretLines,
  secretText,
  type Value,
  visibleText,
} from './values.ts'

/** Defines a setting that can also be read from the file in `<name>_FILE`. */
function secret<T>(type: Value<T>, description: string) {
  return type.optional().meta({ description, isSecret: true })
}

const region = () => matching(/^[a-z0-9-]{1,64}$/i, 'a region name such as eu-central-1')
const limit = () => integer(0, 1_000_000_000)

const server = {
  PORT: integer(0, 65_535).prefault('3000').describe('TCP port to listen on; 0 picks a free port.'),
  HOST: matching(/^[\w.:%-]+$/, 'an IP address or host name')
    .prefault('127.0.0.1')
    .describe('IP address or host name to listen on; 0.0.0.0 or :: listens on all network interfaces.'),
  LOG_LEVEL: oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent')
    .prefault('info')
    .describe('Minimum level of log lines.'),
  PARLEY_PUBLIC_URL: httpUrlSuchAs('https://chat.example.org')
    .optional()
    .describe('URL at which users and browsers reach the server.'),
  PARLEY_DEVELOPMENT: flag()
    .prefault('false')
    .describe(
      'Set to true to serve pages for developers of Parley, such as /console/_design. `npm run dev` sets it.',
    ),
  PARLEY_ALLOWED_HOSTS: hostList()
    .optional()
    .describe(
      'Host header values that the server accepts. It rejects requests with other values. If unset, it accepts all values.',
    ),
  PARLEY_TRUSTED_PROXIES: addressBlockList()
    .optional()
    .describe('Addresses of reverse proxies. The server trusts their X-Forwarded-For headers.'),
}

const consoleIdentity = {
  PARLEY_TRUST_FORWARDED_AUTH: flag()
    .prefault('false')
    .describe(
      'Set to true to trust the identity headers below. Requires PARLEY_PROXY_SECRET or PARLEY_TRUSTED_PROXIES; if both are set, a request must satisfy both.',
    ),
  PARLEY_PROXY_SECRET: secret(secretText(32), 'Secret that the proxy sends in the X-Proxy-Secret header.'),
  PARLEY_HEADER_EMAIL: headerName()
    .prefault('x-email')
    .describe('Header with the email address that identifies the user.'),
  PARLEY_HEADER_USER: headerName()
    .prefault('x-user')
    .describe(
      'Header with the user name. The server uses this header and the headers below only for display.',
    ),
  PARLEY_HEADER_PREFERRED_USERNAME: headerName()
    .prefault('x-preferred-username')
    .describe('Header with the preferred user name.'),
  PARLEY_HEADER_FIRST_NAME: headerName()
    .prefault('x-user-first-name')
    .describe('Header with the first name.'),
  PARLEY_HEADER_LAST_NAME: headerName().prefault('x-user-last-name').describe('Header with the last name.'),
  PARLEY_HEADER_GROUPS: headerName()
    .prefault('x-groups')
    .describe("Header with the user's groups, separated by commas."),
  PARLEY_ADMIN_EMAILS: emailList()
    .optional()
    .describe('Email addresses of the administrators; not case-sensitive.'),
}

const data = {
  PARLEY_DATA_DIR: path()
    .prefault('./data')
    .describe('Directory for the SQLite database, files and uploads; :memory: keeps everything in memory.'),
  DATABASE_URL: secret(
    postgresUrl(),
    'PostgreSQL database to use instead of SQLite (docs/postgresql.md). If unset, the server uses SQLite in PARLEY_DATA_DIR.',
  ),
  REDIS_URL: secret(
    redisUrl(),
    'Redis database for rate limits and notifications between replicas (docs/replicas.md). Use a separate database number for each installation. If unset, replicas use PostgreSQL.',
  ),
  PARLEY_USAGE_RETENTION_DAYS: integer(1, 36_500)
    .prefault('30')
    .describe(
      'Number of days for which the server stores the usage record of each call. It stores daily totals forever.',
    ),
  PARLEY_SECRET: secret(
    secretText(32),
    'Master key that encrypts stored secrets, such as agent keys, provider keys and webhook secrets. If unset, the server generates one in the file `secret` in the data directory. Keep a copy, because a server with stored keys does not start with a different one.',
  ),
  PARLEY_SECRET_PREVIOUS: secret(
    secretLines(32),
    'Previous values of PARLEY_SECRET, needed after you change it. At startup, the server re-encrypts the stored secrets with the new value. Artifact and visitor tokens that were signed with a previous value remain valid. Remove this setting after 30 days, when these tokens have expired.',
  ),
  PARLEY_PARENT_KEY: secret(
    parentKey(),
    'Parent key (svc_…) that the server registers at startup if it does not exist yet.',
  ),
}

const bucket = {
  S3_BUCKET: matching(
    /^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$/i,
    'a bucket name: 3 to 63 letters, digits, dots, hyphens and underscores, with a letter or digit at both ends',
  )
    .optional()
    .describe(
      'S3-compatible bucket for files and uploads (docs/storage.md). If unset, they are stored in the data directory.',
    ),
  S3_PREFIX: matching(
    /^(?=.{1,200}$)\w[\w.-]*(\/\w[\w.-]*)*\/?$/,
    'a path made of letters, digits, dots, hyphens and slashes that does not start with a slash, such as parley/',
  )
    .optional()
    .describe('Prefix of all object names; use a separate prefix for each installation.'),
  S3_ENDPOINT: httpUrlSuchAs('http://127.0.0.1:9000')
    .optional()
    .describe('URL of the S3 server. If unset, the server uses AWS.'),
  S3_REGION: region().optional().describe('Region of the bucket. Defaults to AWS_REGION, then to us-east-1.'),
  S3_FORCE_PATH_STYLE: flag()
    .optional()
    .describe(
      'Set to true to put the bucket name in the URL path, or to false to put it in the host name. Defaults to true if S3_ENDPOINT is set, otherwise to false.',
    ),
  AWS_REGION: region()
    .optional()
    .describe('Region of the bucket if S3_REGION is unset. AWS sets this variable in its containers.'),
  AWS_ACCESS_KEY_ID: visibleText()
    .optional()
    .describe(
      'Access key ID for the bucket; required with S3_ENDPOINT. If unset, the server uses the credentials that AWS provides to this machine or container.',
    ),
  AWS_SECRET_ACCESS_KEY: secret(visibleText(), 'Secret access key for AWS_ACCESS_KEY_ID.'),
  AWS_SESSION_TOKEN: secret(visibleText(), 'Session token that belongs to a temporary access key.'),
}

const observability = {
  PARLEY_METRICS_TOKEN: secret(
    bearerToken(16),
    'Bearer token that remote clients must send to read /metrics; clients on the same machine do not need it.',
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrlSuchAs('http://127.0.0.1:4318')
    .optional()
    .describe('Base URL of the OTLP/HTTP collector that receives traces. If unset, tracing is off.'),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: httpUrlSuchAs('http://127.0.0.1:4318/v1/traces')
    .optional()
    .describe(
      'Complete URL to which the server sends traces; takes precedence over OTEL_EXPORTER_OTLP_ENDPOINT.',
    ),
  OTEL_EXPORTER_OTLP_HEADERS: secret(
    headerList(),
    'Headers that the server sends to the collector with traces.',
  ),
  OTEL_SERVICE_NAME: printable('a name').prefault('parley').describe('Name of this installation in traces.'),
  OTEL_TRACES_SAMPLER: oneOf(
    'always_on',
    'always_off',
    'traceidratio',
    'parentbased_always_on',
    'parentbased_always_off',
    'parentbased_traceidratio',
  )
    .prefault('parentbased_always_on')
    .describe(
      'Sampler that decides which requests are traced. If a client sends a traceparent header, the parentbased_ samplers use the decision in that header.',
    ),
  OTEL_TRACES_SAMPLER_ARG: fraction()
    .prefault('1')
    .describe('Fraction of requests that the traceidratio samplers trace.'),
}

const backend = {
  PARLEY_CONFIG: path()
    .optional()
    .describe(
      'YAML file that configures more model providers (docs/providers.md), prices (docs/prices.md), MCP servers (docs/tools.md) and webhooks of the operator (docs/webhooks.md). If it lists providers and PARLEY_BACKEND is unset, the server uses only those providers.',
    ),
  PARLEY_PRICES: path().optional().describe('Price list to use instead of the shipped one (docs/prices.md).'),
  PARLEY_BACKEND: oneOf('mock', 'gateway', 'local')
    .prefault('mock')
    .describe(
      'Model provider: mock (built in, for testing), gateway (an OpenAI-compatible API) or local (docs/local-models.md).',
    ),
  PARLEY_GATEWAY_URL: gatewayUrl()
    .optional()
    .describe('Base URL of the gateway; required with PARLEY_BACKEND=gateway.'),
  PARLEY_GATEWAY_API_KEY: secret(
    visibleText(),
    'API key that the server sends to the gateway. If unset, it does not send a key.',
  ),
  PARLEY_LOCAL_URL: localUrl()
    .prefault(LOCAL_URL)
    .describe('URL of Ollama or llama-server, with or without /v1; used with PARLEY_BACKEND=local.'),
  PARLEY_LOCAL_MODEL: path()
    .optional()
    .describe(
      'GGUF model file to run in the server process instead of using PARLEY_LOCAL_URL. Requires PARLEY_BACKEND=local and the node-llama-cpp package.',
    ),
  PARLEY_LOCAL_THREADS: localThreads()
    .optional()
    .describe('Number of threads for PARLEY_LOCAL_MODEL. Defaults to one per available processor.'),
  PARLEY_LOCAL_CONTEXT: localContext()
    .optional()
    .describe(
      "Context size of PARLEY_LOCAL_MODEL per response, in tokens. Defaults to the model's maximum, but at most 8192.",
    ),
  PARLEY_CONSOLE_PROVIDERS: oneOf('any', 'public', 'off')
    .prefault('any')
    .describe(
      'Providers that administrators may add in the console: any (also on this machine and in private networks), public (only at public addresses) or off. Link-local and cloud metadata addresses are never allowed.',
    ),
  PARLEY_DEFAULT_MODEL: printable('a model id')
    .optional()
    .describe(
      'Model for agents and requests that do not specify one. Defaults to the first model that can chat.',
    ),
  PARLEY_DEFAULT_EMBEDDING_MODEL: printable('a model id')
    .optional()
    .describe(
      'Model for embeddings requests that do not specify one. Defaults to the first embedding model.',
    ),
  PARLEY_BACKEND_ATTEMPTS: integer(1, 10)
    .prefault('3')
    .describe(
      'Maximum number of attempts to call the model provider, including the first; all model calls of one request share the retries. The server calls each fallback model at least once, even if this exceeds the maximum.',
    ),
  PARLEY_BREAKER_CALLS: limit()
    .prefault('10')
    .describe(
      'Minimum number of calls to a model within PARLEY_BREAKER_WINDOW_SECONDS before its circuit breaker can open. If at least half of these calls fail, the server skips the model and uses its fallback. With 0, the server never skips a model.',
    ),
  PARLEY_BREAKER_WINDOW_SECONDS: seconds()
    .prefault('10')
    .describe('Length of the window in which a circuit breaker counts calls, in seconds.'),
  PARLEY_BREAKER_REST_SECONDS: seconds()
    .prefault('15')
    .describe('Seconds for which the server skips a model after its circuit breaker opens.'),
}

const tools = {
  PARLEY_HOOKS: path()
    .optional()
    .describe(
      'ES module that can export tools, onUploadComplete and onConversionEnd. MCP servers are configured in PARLEY_CONFIG.',
    ),
}

const widget = {
  PARLEY_WIDGET_CONNECT_ORIGINS: originList()
    .optional()
    .describe('Origins of other chat servers that pages can set as the endpoint of the widget.'),
  PARLEY_WIDGET_ALLOW_PROVIDER_KEY: flag()
    .prefault('false')
    .describe(
      'Set to true to allow pages to give the widget an API key for another chat server. Every visitor to such a page can read the key.',
    ),
}

export const settingGroups = {
  Server: server,
  'Console identity: sign-in through a proxy (docs/console-identity.md)': consoleIdentity,
  'Data and secrets': data,
  'Object storage': bucket,
  'Metrics and traces (docs/observability.md)': observability,
  'Model provider': backend,
  'Tools (docs/tools.md)': tools,
  'Limits (0 means unlimited)': limits,
  'Chat widget (docs/widget.md)': widget,
  'Uploads (docs/uploads.md)': uploads,
  'Conversations (docs/conversations.md)': conversations,
  'Timeouts in seconds': times,
}

export const Settings = z.object({
  ...server,
  ...consoleIdentity,
  ...data,
  ...bucket,
  ...observability,
  ...backend,
  ...tools,
  ...limits,
  ...widget,
  ...uploads,
  ...conversations,
  ...times,
})

export type Settings = z.infer<typeof Settings>

export type Variables = NodeJS.Dict<string>

export const secretNames: readonly string[] = Object.entries(Settings.shape)
  .filter(([, setting]) => setting.meta()?.isSecret)
  .map(([name]) => name)

/** The names of all variables that the service reads, including the `_FILE` variables. */
export const settingNames: readonly string[] = [
  ...Object.keys(Settings.shape),
  ...secretNames.map((name) => `${name}_FILE`),
]
