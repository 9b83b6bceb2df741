/** Every environment variable the service reads: its kind, default and help text. `npm run settings` writes `.env.example` and `docs/configuration.md` from it. */
import { z } from 'zod'
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

/** A setting that `<name>_FILE` can read from a file. */
function secret<T>(type: Value<T>, description: string) {
  return type.optional().meta({ description, isSecret: true })
}

const region = () => matching(/^[a-z0-9-]{1,64}$/i, 'the name of a region, such as eu-central-1')
const limit = () => integer(0, 1_000_000_000)
const TEBIBYTE = 1024 ** 4

const server = {
  PORT: integer(0, 65_535).prefault('3000').describe('TCP port to listen on; 0 picks a free port.'),
  HOST: matching(/^[\w.:%-]+$/, 'an address or host name to listen on')
    .prefault('127.0.0.1')
    .describe('Where to listen; 0.0.0.0 or :: listens on every network interface.'),
  LOG_LEVEL: oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent')
    .prefault('info')
    .describe('Least severe level of log lines to write.'),
  PARLEY_PUBLIC_URL: httpUrlSuchAs('https://chat.example.org')
    .optional()
    .describe('URL at which clients reach the service.'),
  PARLEY_ALLOWED_HOSTS: hostList()
    .optional()
    .describe('Host headers to accept; requests with another one are rejected. Unset accepts any.'),
  PARLEY_TRUSTED_PROXIES: addressBlockList()
    .optional()
    .describe('Reverse proxies whose X-Forwarded-For header is trusted.'),
}

const consoleIdentity = {
  PARLEY_TRUST_FORWARDED_AUTH: flag()
    .prefault('false')
    .describe(
      'true trusts the identity headers below. Requires PARLEY_PROXY_SECRET, PARLEY_TRUSTED_PROXIES or both; a request must pass every one that is set.',
    ),
  PARLEY_PROXY_SECRET: secret(secretText(32), 'Secret that the proxy sends in the X-Proxy-Secret header.'),
  PARLEY_HEADER_EMAIL: headerName()
    .prefault('x-email')
    .describe('Header with the e-mail address, which identifies the user.'),
  PARLEY_HEADER_USER: headerName()
    .prefault('x-user')
    .describe('Header with the user name. This and the headers below are only displayed.'),
  PARLEY_HEADER_PREFERRED_USERNAME: headerName()
    .prefault('x-preferred-username')
    .describe('Header with the preferred user name.'),
  PARLEY_HEADER_FIRST_NAME: headerName()
    .prefault('x-user-first-name')
    .describe('Header with the first name.'),
  PARLEY_HEADER_LAST_NAME: headerName().prefault('x-user-last-name').describe('Header with the last name.'),
  PARLEY_HEADER_GROUPS: headerName()
    .prefault('x-groups')
    .describe('Header with the groups, separated by commas.'),
  PARLEY_ADMIN_EMAILS: emailList().optional().describe('Administrators; case is ignored.'),
}

const data = {
  PARLEY_DATA_DIR: path()
    .prefault('./data')
    .describe('Directory for the SQLite database, files and uploads; :memory: stores nothing on disk.'),
  DATABASE_URL: secret(
    postgresUrl(),
    'PostgreSQL database for the rows (docs/postgresql.md). Unset uses SQLite in PARLEY_DATA_DIR.',
  ),
  REDIS_URL: secret(
    redisUrl(),
    'Redis database in which replicas count limits and publish changes (docs/replicas.md); use a separate database number for each installation. Unset uses PostgreSQL for both.',
  ),
  PARLEY_USAGE_RETENTION_DAYS: integer(1, 36_500)
    .prefault('30')
    .describe('Days to keep the usage record of each call; daily totals are kept forever.'),
  PARLEY_SECRET: secret(
    secretText(32),
    'Master key that encrypts stored agent keys. Unset generates one in the file `secret` of the data directory. Keep a copy: with stored agents, the server starts only with the same key.',
  ),
  PARLEY_SECRET_PREVIOUS: secret(
    secretLines(32),
    'Former values of PARLEY_SECRET, while you change it: artifact tokens signed with them stay valid, and the next start encrypts the agent keys with the new one. Remove them after 30 days, when those tokens have expired.',
  ),
  PARLEY_PARENT_KEY: secret(parentKey(), 'Parent key (svc_…) to register at start, unless it is registered.'),
}

const bucket = {
  S3_BUCKET: matching(
    /^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$/i,
    'the name of a bucket: 3 to 63 letters, digits, dots and hyphens',
  )
    .optional()
    .describe(
      'S3-compatible bucket for files and uploads (docs/storage.md). Unset stores them in the data directory.',
    ),
  S3_PREFIX: matching(
    /^(?=.{1,200}$)\w[\w.-]*(\/\w[\w.-]*)*\/?$/,
    'a path of letters, digits, dots, hyphens and slashes that does not start with a slash, such as parley/',
  )
    .optional()
    .describe('Prefix of every object name; use a separate one for each installation.'),
  S3_ENDPOINT: httpUrlSuchAs('http://127.0.0.1:9000')
    .optional()
    .describe('URL of the S3 server. Unset uses AWS.'),
  S3_REGION: region().optional().describe('Region of the bucket. Unset uses AWS_REGION, or else us-east-1.'),
  S3_FORCE_PATH_STYLE: flag()
    .optional()
    .describe(
      'true puts the bucket name in the URL path, false in the host name. Unset means true with S3_ENDPOINT and false without.',
    ),
  AWS_REGION: region()
    .optional()
    .describe('Region to use if S3_REGION is unset; AWS sets it in its containers.'),
  AWS_ACCESS_KEY_ID: visibleText()
    .optional()
    .describe(
      'Access key ID for the bucket; required with S3_ENDPOINT. Unset uses the credentials that AWS gives this machine or container.',
    ),
  AWS_SECRET_ACCESS_KEY: secret(visibleText(), 'Secret of that access key.'),
  AWS_SESSION_TOKEN: secret(visibleText(), 'Session token of a temporary access key.'),
}

const observability = {
  PARLEY_METRICS_TOKEN: secret(
    bearerToken(16),
    'Bearer token that clients on other machines must send to read /metrics; clients on this machine need none.',
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrlSuchAs('http://127.0.0.1:4318')
    .optional()
    .describe('OTLP/HTTP collector to send traces to. Unset sends none.'),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: httpUrlSuchAs('http://127.0.0.1:4318/v1/traces')
    .optional()
    .describe('The same as a complete URL; it takes precedence.'),
  OTEL_EXPORTER_OTLP_HEADERS: secret(headerList(), 'Headers to send with traces.'),
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
      'Which requests to trace; the parentbased_ samplers follow the decision of the caller if it sends one.',
    ),
  OTEL_TRACES_SAMPLER_ARG: fraction()
    .prefault('1')
    .describe('Fraction of requests that the traceidratio samplers trace.'),
}

const backend = {
  PARLEY_CONFIG: path()
    .optional()
    .describe(
      'YAML file with further providers (docs/providers.md) and MCP servers (docs/tools.md). With providers in it and no PARLEY_BACKEND, they are the only ones.',
    ),
  PARLEY_BACKEND: oneOf('mock', 'gateway', 'local')
    .prefault('mock')
    .describe(
      'Source of model answers: mock (built in, for testing), gateway (an OpenAI-compatible API) or local (docs/local-models.md).',
    ),
  PARLEY_GATEWAY_URL: gatewayUrl()
    .optional()
    .describe('Base URL of the gateway; required with PARLEY_BACKEND=gateway.'),
  PARLEY_GATEWAY_API_KEY: secret(visibleText(), 'API key to send to the gateway. Unset sends none.'),
  PARLEY_LOCAL_URL: localUrl()
    .prefault(LOCAL_URL)
    .describe('Address of Ollama or llama-server, with or without /v1, for PARLEY_BACKEND=local.'),
  PARLEY_LOCAL_MODEL: path()
    .optional()
    .describe(
      'GGUF file to run in this process instead, for PARLEY_BACKEND=local; requires the package node-llama-cpp.',
    ),
  PARLEY_LOCAL_THREADS: localThreads()
    .optional()
    .describe('Processor threads for that model. Unset uses all that the machine runs at once.'),
  PARLEY_LOCAL_CONTEXT: localContext()
    .optional()
    .describe(
      'Tokens of context per answer of that model. Unset uses the size that the model supports, at most 8192.',
    ),
  PARLEY_DEFAULT_MODEL: printable('a model id').optional().describe('Model for agents that name none.'),
  PARLEY_DEFAULT_EMBEDDING_MODEL: printable('a model id')
    .optional()
    .describe(
      'Model for embedding requests that name none. Unset uses the first embedding model of the backend.',
    ),
  PARLEY_BACKEND_ATTEMPTS: integer(1, 10)
    .prefault('3')
    .describe('Most calls to the backend for one request, including the first.'),
  PARLEY_BREAKER_CALLS: limit()
    .prefault('10')
    .describe(
      'Calls in the window below, half of them failed, after which a model is skipped and its fallback answers; 0 never skips it.',
    ),
  PARLEY_BREAKER_WINDOW_SECONDS: seconds()
    .prefault('10')
    .describe('Window over which those calls are counted.'),
  PARLEY_BREAKER_REST_SECONDS: seconds()
    .prefault('15')
    .describe('Time for which a model is skipped before one call tries it again.'),
}

const tools = {
  PARLEY_HOOKS: path()
    .optional()
    .describe(
      'ES module that exports tools and onUploadComplete; MCP servers are configured in PARLEY_CONFIG.',
    ),
}

const limits = {
  PARLEY_RATE_LIMIT_PARENT: limit().prefault('600').describe('Requests per minute for each parent key.'),
  PARLEY_RATE_LIMIT_AGENT: limit().prefault('120').describe('Requests per minute for each agent key.'),
  PARLEY_RATE_LIMIT_AGENT_ADDRESS: limit()
    .prefault('60')
    .describe('Requests per minute for each agent key from one address.'),
  PARLEY_RATE_LIMIT_AUTH_FAILURES: limit()
    .prefault('30')
    .describe('Requests per minute without a valid key from one address.'),
  PARLEY_MAX_STREAMS_PARENT: limit().prefault('50').describe('Streams open at once for each parent key.'),
  PARLEY_MAX_STREAMS_AGENT: limit().prefault('20').describe('Streams open at once for each agent key.'),
  PARLEY_MAX_STREAMS_ADDRESS: limit()
    .prefault('4')
    .describe('Streams open at once with agent keys from one address.'),
  PARLEY_MAX_BODY_BYTES: integer(1024, 268_435_456)
    .prefault('20971520')
    .describe('Largest body of a chat or embeddings request, in bytes; cannot be turned off.'),
  PARLEY_MAX_BODY_BYTES_AGENT: integer(1024, 268_435_456)
    .prefault('2097152')
    .describe(
      'Largest body of a request with an agent key, in bytes, and never more than PARLEY_MAX_BODY_BYTES; raise it for large attachments.',
    ),
  PARLEY_MAX_FILE_BYTES: integer(1, TEBIBYTE)
    .prefault('2147483648')
    .describe('Largest file, in bytes; cannot be turned off.'),
  PARLEY_MAX_UPLOAD_BYTES: integer(1, TEBIBYTE)
    .prefault('5368709120')
    .describe('Largest upload, in bytes; cannot be turned off.'),
  PARLEY_STORAGE_QUOTA_BYTES: integer(0, 1024 * TEBIBYTE)
    .prefault('53687091200')
    .describe('Bytes that the files and artifacts of each parent key may take together.'),
}

const widget = {
  PARLEY_WIDGET_CONNECT_ORIGINS: originList()
    .optional()
    .describe('Other servers that the widget may call if a page names one of them as its endpoint.'),
  PARLEY_WIDGET_ALLOW_PROVIDER_KEY: flag()
    .prefault('false')
    .describe(
      'true lets pages give the widget a provider key for such an endpoint. Every visitor of the page can read that key.',
    ),
}

const uploads = {
  PARLEY_UPLOAD_FSYNC: flag()
    .prefault('true')
    .describe(
      'false answers before the bytes of an upload are on disk: faster, but a power failure can lose acknowledged bytes.',
    ),
  PARLEY_UPLOAD_EXPIRY_SECONDS: integer(60, 31_536_000)
    .prefault('86400')
    .describe(
      'Whole seconds after its last bytes for which an unfinished upload can be resumed; then it is deleted.',
    ),
  PARLEY_CONVERSION_TRIES: integer(1, 10)
    .prefault('3')
    .describe('Attempts to convert an upload before it is served unconverted.'),
  PARLEY_CONVERSION_MEMORY_BYTES: integer(536_870_912, TEBIBYTE)
    .prefault('2147483648')
    .describe('Memory for one conversion, in bytes; cannot be turned off (docs/conversion.md).'),
}

const times = {
  PARLEY_BACKEND_CONNECT_SECONDS: seconds().prefault('5').describe('To connect to the backend.'),
  PARLEY_BACKEND_FIRST_BYTE_SECONDS: seconds()
    .prefault('60')
    .describe('Until the first byte of an answer of the backend, per attempt.'),
  PARLEY_BACKEND_FIRST_EVENT_SECONDS: seconds()
    .prefault('120')
    .describe('Until the first event of an answer of the backend, over all attempts.'),
  PARLEY_BACKEND_IDLE_SECONDS: seconds()
    .prefault('60')
    .describe('Between two parts of a streamed answer of the backend.'),
  PARLEY_BACKEND_TOTAL_SECONDS: seconds()
    .prefault('600')
    .describe('For a complete answer of the backend that is not streamed.'),
  PARLEY_STREAM_MAX_SECONDS: seconds().prefault('900').describe('For a complete stream.'),
  PARLEY_TOOL_SECONDS: seconds().prefault('30').describe('For one call of a tool that runs on the server.'),
  PARLEY_HEARTBEAT_SECONDS: seconds()
    .prefault('15')
    .describe('Silence on a stream after which the server sends a comment to keep the connection open.'),
  PARLEY_BODY_SECONDS: seconds().prefault('30').describe('To receive a complete JSON body.'),
  PARLEY_BODY_IDLE_SECONDS: seconds().prefault('10').describe('Between two parts of a body.'),
  PARLEY_UPLOAD_IDLE_SECONDS: seconds()
    .prefault('60')
    .describe('Between two parts of an upload; the bytes received so far are kept.'),
  PARLEY_CONVERSION_SECONDS: seconds().prefault('600').describe('For one conversion of an upload.'),
  PARLEY_SHUTDOWN_SECONDS: seconds()
    .prefault('25')
    .describe('For open streams to end after the server received SIGTERM or SIGINT.'),
}

export const settingGroups = {
  Server: server,
  'Console identity: a proxy authenticates users (docs/console-identity.md)': consoleIdentity,
  'Data and secrets': data,
  'Object storage': bucket,
  'Metrics and traces (docs/observability.md)': observability,
  'Model backend': backend,
  'Tools that run on the server (docs/tools.md)': tools,
  'Limits, where 0 turns one off': limits,
  'Chat widget (docs/widget.md)': widget,
  'Uploads (docs/uploads.md)': uploads,
  'Time-outs in seconds': times,
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
  ...times,
})

export type Settings = z.infer<typeof Settings>

export type Variables = NodeJS.Dict<string>

export const secretNames: readonly string[] = Object.entries(Settings.shape)
  .filter(([, setting]) => setting.meta()?.isSecret)
  .map(([name]) => name)

/** Every name the service reads, `_FILE` twins included. */
export const settingNames: readonly string[] = [
  ...Object.keys(Settings.shape),
  ...secretNames.map((name) => `${name}_FILE`),
]
