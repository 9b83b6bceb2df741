/**
 * Defines every environment variable that the service reads: its type, default and help text. `npm run
 * settings` generates `.env.example` and `docs/configuration.md` from it.
 */
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

/** Defines a setting whose value can also come from the file that `<name>_FILE` names. */
function secret<T>(type: Value<T>, description: string) {
  return type.optional().meta({ description, isSecret: true })
}

const region = () => matching(/^[a-z0-9-]{1,64}$/i, 'a region name such as eu-central-1')
const limit = () => integer(0, 1_000_000_000)
const TEBIBYTE = 1024 ** 4

const server = {
  PORT: integer(0, 65_535).prefault('3000').describe('TCP port to listen on; 0 picks a free port.'),
  HOST: matching(/^[\w.:%-]+$/, 'an IP address or host name')
    .prefault('127.0.0.1')
    .describe('IP address or host name to listen on; 0.0.0.0 or :: listens on all network interfaces.'),
  LOG_LEVEL: oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent')
    .prefault('info')
    .describe('Minimum severity of the log lines to write.'),
  PARLEY_PUBLIC_URL: httpUrlSuchAs('https://chat.example.org')
    .optional()
    .describe('Public URL of the service.'),
  PARLEY_ALLOWED_HOSTS: hostList()
    .optional()
    .describe('Host header values to accept; requests with any other value are rejected. Unset accepts all.'),
  PARLEY_TRUSTED_PROXIES: addressBlockList()
    .optional()
    .describe('Reverse proxies whose X-Forwarded-For header the server trusts.'),
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
    .describe('Header with the user name. This and the headers below are used for display only.'),
  PARLEY_HEADER_PREFERRED_USERNAME: headerName()
    .prefault('x-preferred-username')
    .describe('Header with the preferred user name.'),
  PARLEY_HEADER_FIRST_NAME: headerName()
    .prefault('x-user-first-name')
    .describe('Header with the first name.'),
  PARLEY_HEADER_LAST_NAME: headerName().prefault('x-user-last-name').describe('Header with the last name.'),
  PARLEY_HEADER_GROUPS: headerName()
    .prefault('x-groups')
    .describe('Header with the groups of the user, separated by commas.'),
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
    'PostgreSQL database to use instead of SQLite (docs/postgresql.md). Unset uses SQLite in PARLEY_DATA_DIR.',
  ),
  REDIS_URL: secret(
    redisUrl(),
    'Redis database through which replicas share rate limits and publish changes (docs/replicas.md); use a separate database number for each installation. Unset uses PostgreSQL for both.',
  ),
  PARLEY_USAGE_RETENTION_DAYS: integer(1, 36_500)
    .prefault('30')
    .describe('Number of days to keep the usage record of each call; daily totals are kept forever.'),
  PARLEY_SECRET: secret(
    secretText(32),
    'Master key that encrypts stored agent keys. Unset generates one in the file `secret` of the data directory. Keep a copy: once agents are stored, the server starts only with the same key.',
  ),
  PARLEY_SECRET_PREVIOUS: secret(
    secretLines(32),
    'Previous values of PARLEY_SECRET, for use while you change it. Artifact tokens signed with them stay valid, and the next start re-encrypts the agent keys with the new value. Remove this setting after 30 days, when those tokens have expired.',
  ),
  PARLEY_PARENT_KEY: secret(
    parentKey(),
    'Parent key (svc_…) to register at startup if it is not registered yet.',
  ),
}

const bucket = {
  S3_BUCKET: matching(
    /^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$/i,
    'a bucket name: 3 to 63 letters, digits, dots and hyphens',
  )
    .optional()
    .describe(
      'S3-compatible bucket for files and uploads (docs/storage.md). Unset stores them in the data directory.',
    ),
  S3_PREFIX: matching(
    /^(?=.{1,200}$)\w[\w.-]*(\/\w[\w.-]*)*\/?$/,
    'a path made of letters, digits, dots, hyphens and slashes that does not start with a slash, such as parley/',
  )
    .optional()
    .describe('Prefix of all object names; use a separate prefix for each installation.'),
  S3_ENDPOINT: httpUrlSuchAs('http://127.0.0.1:9000')
    .optional()
    .describe('URL of the S3 server. Unset uses AWS.'),
  S3_REGION: region().optional().describe('Region of the bucket. Unset uses AWS_REGION, then us-east-1.'),
  S3_FORCE_PATH_STYLE: flag()
    .optional()
    .describe(
      'Set to true to put the bucket name in the URL path, or to false to put it in the host name. Defaults to true if S3_ENDPOINT is set, otherwise to false.',
    ),
  AWS_REGION: region()
    .optional()
    .describe('Region to use if S3_REGION is unset; AWS sets this variable in its containers.'),
  AWS_ACCESS_KEY_ID: visibleText()
    .optional()
    .describe(
      'Access key ID for the bucket; required with S3_ENDPOINT. Unset uses the credentials that AWS provides to this machine or container.',
    ),
  AWS_SECRET_ACCESS_KEY: secret(visibleText(), 'Secret access key for AWS_ACCESS_KEY_ID.'),
  AWS_SESSION_TOKEN: secret(visibleText(), 'Session token of a temporary access key.'),
}

const observability = {
  PARLEY_METRICS_TOKEN: secret(
    bearerToken(16),
    'Bearer token that remote clients must send to read /metrics; clients on the same machine do not need it.',
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrlSuchAs('http://127.0.0.1:4318')
    .optional()
    .describe('Base URL of the OTLP/HTTP collector that receives traces. Unset turns tracing off.'),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: httpUrlSuchAs('http://127.0.0.1:4318/v1/traces')
    .optional()
    .describe('Complete URL for traces; takes precedence over OTEL_EXPORTER_OTLP_ENDPOINT.'),
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
      'Sampler that decides which requests are traced; the parentbased_ samplers follow the decision of the caller if it sends one.',
    ),
  OTEL_TRACES_SAMPLER_ARG: fraction()
    .prefault('1')
    .describe('Fraction of requests that the traceidratio samplers trace.'),
}

const backend = {
  PARLEY_CONFIG: path()
    .optional()
    .describe(
      'YAML file that configures more model providers (docs/providers.md) and MCP servers (docs/tools.md). If it lists providers and PARLEY_BACKEND is unset, only those providers are used.',
    ),
  PARLEY_BACKEND: oneOf('mock', 'gateway', 'local')
    .prefault('mock')
    .describe(
      'Model provider: mock (built in, for testing), gateway (an OpenAI-compatible API) or local (docs/local-models.md).',
    ),
  PARLEY_GATEWAY_URL: gatewayUrl()
    .optional()
    .describe('Base URL of the gateway; required with PARLEY_BACKEND=gateway.'),
  PARLEY_GATEWAY_API_KEY: secret(visibleText(), 'API key to send to the gateway. Unset sends no key.'),
  PARLEY_LOCAL_URL: localUrl()
    .prefault(LOCAL_URL)
    .describe('URL of Ollama or llama-server, with or without /v1; used with PARLEY_BACKEND=local.'),
  PARLEY_LOCAL_MODEL: path()
    .optional()
    .describe(
      'GGUF model file to run in the server process instead of calling PARLEY_LOCAL_URL; used with PARLEY_BACKEND=local and requires the node-llama-cpp package.',
    ),
  PARLEY_LOCAL_THREADS: localThreads()
    .optional()
    .describe('Number of threads for PARLEY_LOCAL_MODEL. Unset uses one per available processor.'),
  PARLEY_LOCAL_CONTEXT: localContext()
    .optional()
    .describe(
      'Context size per response of PARLEY_LOCAL_MODEL, in tokens. Unset uses the maximum of the model, capped at 8192.',
    ),
  PARLEY_DEFAULT_MODEL: printable('a model id').optional().describe('Model for agents that do not name one.'),
  PARLEY_DEFAULT_EMBEDDING_MODEL: printable('a model id')
    .optional()
    .describe(
      'Model for embedding requests that do not name one. Unset uses the first embedding model that the provider lists.',
    ),
  PARLEY_BACKEND_ATTEMPTS: integer(1, 10)
    .prefault('3')
    .describe(
      'Maximum number of calls to the model provider for one request, including the first. Each fallback model is called at least once, also beyond this number.',
    ),
  PARLEY_BREAKER_CALLS: limit()
    .prefault('10')
    .describe(
      'Minimum number of calls to a model within the window below before it can be skipped. If half of them fail, requests go to the fallback model; 0 never skips a model.',
    ),
  PARLEY_BREAKER_WINDOW_SECONDS: seconds()
    .prefault('10')
    .describe('Length of the window in which those calls are counted, in seconds.'),
  PARLEY_BREAKER_REST_SECONDS: seconds()
    .prefault('15')
    .describe('Time for which a model is skipped before one call tries it again, in seconds.'),
}

const tools = {
  PARLEY_HOOKS: path()
    .optional()
    .describe(
      'ES module that exports tools and onUploadComplete; MCP servers are configured in PARLEY_CONFIG.',
    ),
}

const limits = {
  PARLEY_RATE_LIMIT_PARENT: limit().prefault('600').describe('Requests per minute per parent key.'),
  PARLEY_RATE_LIMIT_AGENT: limit().prefault('120').describe('Requests per minute per agent key.'),
  PARLEY_RATE_LIMIT_AGENT_ADDRESS: limit()
    .prefault('60')
    .describe('Requests per minute per agent key and client IP address.'),
  PARLEY_RATE_LIMIT_AUTH_FAILURES: limit()
    .prefault('30')
    .describe('Requests per minute without a valid key per client IP address.'),
  PARLEY_MAX_STREAMS_PARENT: limit().prefault('50').describe('Concurrent streams per parent key.'),
  PARLEY_MAX_STREAMS_AGENT: limit().prefault('20').describe('Concurrent streams per agent key.'),
  PARLEY_MAX_STREAMS_ADDRESS: limit()
    .prefault('4')
    .describe('Concurrent streams with agent keys per client IP address.'),
  PARLEY_MAX_BODY_BYTES: integer(1024, 268_435_456)
    .prefault('20971520')
    .describe('Maximum body size of a chat or embeddings request, in bytes; cannot be turned off.'),
  PARLEY_MAX_BODY_BYTES_AGENT: integer(1024, 268_435_456)
    .prefault('2097152')
    .describe(
      'Maximum body size of a request with an agent key, in bytes; PARLEY_MAX_BODY_BYTES applies too. Raise it for large attachments.',
    ),
  PARLEY_MAX_FILE_BYTES: integer(1, TEBIBYTE)
    .prefault('2147483648')
    .describe('Maximum file size, in bytes; cannot be turned off.'),
  PARLEY_MAX_UPLOAD_BYTES: integer(1, TEBIBYTE)
    .prefault('5368709120')
    .describe('Maximum upload size, in bytes; cannot be turned off.'),
  PARLEY_MAX_AGENTS: limit().prefault('1000').describe('Agents of each parent key.'),
  PARLEY_STORAGE_QUOTA_BYTES: integer(0, 1024 * TEBIBYTE)
    .prefault('53687091200')
    .describe('Maximum total size of the files and artifacts of one parent key, in bytes.'),
}

const widget = {
  PARLEY_WIDGET_CONNECT_ORIGINS: originList()
    .optional()
    .describe('Other API servers that the widget may call when a page sets one of them as its endpoint.'),
  PARLEY_WIDGET_ALLOW_PROVIDER_KEY: flag()
    .prefault('false')
    .describe(
      'Set to true to let a page pass a provider key to the widget for such an endpoint. Every visitor to the page can read that key.',
    ),
}

const uploads = {
  PARLEY_UPLOAD_FSYNC: flag()
    .prefault('true')
    .describe(
      'Set to false to acknowledge upload data before it is flushed to disk. This is faster, but a power failure can lose acknowledged data.',
    ),
  PARLEY_UPLOAD_EXPIRY_SECONDS: integer(60, 31_536_000)
    .prefault('86400')
    .describe('Seconds after which an idle, unfinished upload is deleted and can no longer be resumed.'),
  PARLEY_CONVERSION_TRIES: integer(1, 10)
    .prefault('3')
    .describe(
      'Maximum number of attempts to convert an upload; after the last failure it is served unconverted.',
    ),
  PARLEY_CONVERSION_MEMORY_BYTES: integer(536_870_912, TEBIBYTE)
    .prefault('2147483648')
    .describe('Memory limit for one conversion, in bytes; cannot be turned off (docs/conversion.md).'),
}

const times = {
  PARLEY_BACKEND_CONNECT_SECONDS: seconds().prefault('5').describe('Time to connect to the model provider.'),
  PARLEY_BACKEND_FIRST_BYTE_SECONDS: seconds()
    .prefault('60')
    .describe('Time until the first byte of the provider response, per attempt.'),
  PARLEY_BACKEND_FIRST_EVENT_SECONDS: seconds()
    .prefault('120')
    .describe(
      'Time until the first event of the provider response, across all attempts. A model that has a fallback gets half of the time left.',
    ),
  PARLEY_BACKEND_IDLE_SECONDS: seconds()
    .prefault('60')
    .describe('Time between two chunks of a streamed provider response.'),
  PARLEY_BACKEND_TOTAL_SECONDS: seconds()
    .prefault('600')
    .describe(
      'Total time for a provider response that is not streamed. A model that has a fallback gets half of the time left.',
    ),
  PARLEY_STREAM_MAX_SECONDS: seconds().prefault('900').describe('Total time for a stream to a client.'),
  PARLEY_TOOL_SECONDS: seconds()
    .prefault('30')
    .describe('Time for one call to a tool that runs on the server.'),
  PARLEY_HEARTBEAT_SECONDS: seconds()
    .prefault('15')
    .describe(
      'Time without data on a stream after which the server sends a comment to keep the connection open.',
    ),
  PARLEY_BODY_SECONDS: seconds().prefault('30').describe('Total time to receive a JSON body.'),
  PARLEY_BODY_IDLE_SECONDS: seconds().prefault('10').describe('Time between two chunks of a request body.'),
  PARLEY_UPLOAD_IDLE_SECONDS: seconds()
    .prefault('60')
    .describe('Time between two chunks of an upload; the data received so far is kept.'),
  PARLEY_CONVERSION_SECONDS: seconds().prefault('600').describe('Time for one conversion of an upload.'),
  PARLEY_SHUTDOWN_SECONDS: seconds()
    .prefault('25')
    .describe('Time for open streams to end after the server receives SIGTERM or SIGINT.'),
}

export const settingGroups = {
  Server: server,
  'Console identity: a proxy authenticates users (docs/console-identity.md)': consoleIdentity,
  'Data and secrets': data,
  'Object storage': bucket,
  'Metrics and traces (docs/observability.md)': observability,
  'Model backend': backend,
  'Tools that run on the server (docs/tools.md)': tools,
  'Limits (0 turns a limit off)': limits,
  'Chat widget (docs/widget.md)': widget,
  'Uploads (docs/uploads.md)': uploads,
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
  ...times,
})

export type Settings = z.infer<typeof Settings>

export type Variables = NodeJS.Dict<string>

export const secretNames: readonly string[] = Object.entries(Settings.shape)
  .filter(([, setting]) => setting.meta()?.isSecret)
  .map(([name]) => name)

/** Every name that the service reads, including the `_FILE` variables. */
export const settingNames: readonly string[] = [
  ...Object.keys(Settings.shape),
  ...secretNames.map((name) => `${name}_FILE`),
]
