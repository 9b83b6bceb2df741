/** Every environment variable the service knows: what it may hold, and its default; `.env.example` says the same to operators. */
import { z } from 'zod'
import {
  addressBlockList,
  emailList,
  flag,
  gatewayUrl,
  headerName,
  hostList,
  httpUrl,
  integer,
  LOCAL_URL,
  localContext,
  localThreads,
  localUrl,
  matching,
  oneOf,
  originList,
  parentKeyText,
  postgresUrl,
  seconds,
  secretList,
  secretText,
  visibleText,
} from './config-values.ts'

const limit = (standard: number) => integer(0, 1_000_000_000).default(standard)
const header = (standard: string) => headerName().default(standard)
const region = () => matching(/^[a-z0-9-]{1,64}$/i, 'must be the name of a region, such as eu-central-1')
const duration = (standard: number) => seconds().default(standard)

/** Every variable, what it may hold and its default; `.env.example` says the same to operators. Decision: 2. */
export const Environment = z.object({
  PORT: integer(0, 65_535).default(3000),
  HOST: matching(/^[\w.:%-]+$/, 'must be an address or host name to listen on').default('127.0.0.1'),
  LOG_LEVEL: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
  DATABASE_URL: postgresUrl().optional(),
  PARLEY_DATA_DIR: z.string().default('./data'),
  S3_BUCKET: matching(
    /^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$/i,
    'must be the name of a bucket: 3 to 63 letters, digits, dots and hyphens',
  ).optional(),
  S3_PREFIX: matching(
    /^(?=.{1,200}$)\w[\w.-]*(\/\w[\w.-]*)*\/?$/,
    'must be a path of letters, digits, dots, hyphens and slashes without a slash in front, such as parley/',
  ).optional(),
  S3_ENDPOINT: httpUrl(
    'must be an http or https URL without credentials, query or fragment, such as http://127.0.0.1:9000',
  ).optional(),
  S3_REGION: region().optional(),
  S3_FORCE_PATH_STYLE: flag().optional(),
  AWS_REGION: region().optional(),
  AWS_ACCESS_KEY_ID: visibleText().optional(),
  AWS_SECRET_ACCESS_KEY: visibleText().optional(),
  AWS_SESSION_TOKEN: visibleText().optional(),
  PARLEY_PUBLIC_URL: httpUrl(
    'must be an http or https URL without credentials, query or fragment, such as https://chat.example.org',
  ).optional(),
  PARLEY_SECRET: secretText(32).optional(),
  PARLEY_SECRET_PREVIOUS: secretList(32).optional(),
  PARLEY_PARENT_KEY: parentKeyText().optional(),
  PARLEY_CONFIG: z.string().optional(),
  PARLEY_BACKEND: oneOf(['mock', 'gateway', 'local']).default('mock'),
  PARLEY_GATEWAY_URL: gatewayUrl().optional(),
  PARLEY_GATEWAY_API_KEY: visibleText().optional(),
  PARLEY_LOCAL_URL: localUrl().default(LOCAL_URL),
  PARLEY_LOCAL_MODEL: z.string().optional(),
  PARLEY_LOCAL_THREADS: localThreads().optional(),
  PARLEY_LOCAL_CONTEXT: localContext().optional(),
  PARLEY_DEFAULT_MODEL: matching(
    /^\P{C}{1,200}$/u,
    'must be a model id of at most 200 characters',
  ).optional(),
  PARLEY_DEFAULT_EMBEDDING_MODEL: matching(
    /^\P{C}{1,200}$/u,
    'must be a model id of at most 200 characters',
  ).optional(),
  PARLEY_RATE_LIMIT_PARENT: limit(600),
  PARLEY_RATE_LIMIT_AGENT: limit(120),
  PARLEY_RATE_LIMIT_AGENT_ADDRESS: limit(60),
  PARLEY_RATE_LIMIT_AUTH_FAILURES: limit(30),
  PARLEY_MAX_STREAMS_PARENT: limit(50),
  PARLEY_MAX_STREAMS_AGENT: limit(20),
  PARLEY_MAX_STREAMS_ADDRESS: limit(4),
  PARLEY_MAX_BODY_BYTES: integer(1024, 268_435_456).default(20_971_520),
  PARLEY_MAX_FILE_BYTES: integer(1, 1_099_511_627_776).default(2_147_483_648),
  PARLEY_CONVERSION_SECONDS: duration(600),
  PARLEY_CONVERSION_TRIES: integer(1, 10).default(3),
  PARLEY_CONVERSION_MEMORY_BYTES: integer(536_870_912, 1_099_511_627_776).default(2_147_483_648),
  PARLEY_MAX_UPLOAD_BYTES: integer(1, 1_099_511_627_776).default(5_368_709_120),
  PARLEY_STORAGE_QUOTA_BYTES: integer(0, 1_125_899_906_842_624).default(53_687_091_200),
  PARLEY_UPLOAD_FSYNC: flag().default(true),
  PARLEY_UPLOAD_EXPIRY_SECONDS: integer(60, 31_536_000).default(86_400),
  PARLEY_USAGE_RETENTION_DAYS: integer(1, 36_500).default(30),
  PARLEY_HOOKS: z.string().optional(),
  PARLEY_TRUSTED_PROXIES: addressBlockList().optional(),
  PARLEY_ALLOWED_HOSTS: hostList().optional(),
  PARLEY_TRUST_FORWARDED_AUTH: flag().default(false),
  PARLEY_PROXY_SECRET: secretText(32).optional(),
  PARLEY_HEADER_EMAIL: header('x-email'),
  PARLEY_HEADER_USER: header('x-user'),
  PARLEY_HEADER_PREFERRED_USERNAME: header('x-preferred-username'),
  PARLEY_HEADER_FIRST_NAME: header('x-user-first-name'),
  PARLEY_HEADER_LAST_NAME: header('x-user-last-name'),
  PARLEY_HEADER_GROUPS: header('x-groups'),
  PARLEY_ADMIN_EMAILS: emailList().optional(),
  PARLEY_WIDGET_CONNECT_ORIGINS: originList().optional(),
  PARLEY_WIDGET_ALLOW_PROVIDER_KEY: flag().default(false),
  PARLEY_BACKEND_CONNECT_SECONDS: duration(5),
  PARLEY_BACKEND_FIRST_BYTE_SECONDS: duration(60),
  PARLEY_BACKEND_FIRST_EVENT_SECONDS: duration(120),
  PARLEY_BACKEND_IDLE_SECONDS: duration(60),
  PARLEY_BACKEND_TOTAL_SECONDS: duration(600),
  PARLEY_BACKEND_ATTEMPTS: integer(1, 10).default(3),
  PARLEY_BREAKER_CALLS: limit(10),
  PARLEY_BREAKER_WINDOW_SECONDS: duration(10),
  PARLEY_BREAKER_REST_SECONDS: duration(15),
  PARLEY_STREAM_MAX_SECONDS: duration(900),
  PARLEY_HEARTBEAT_SECONDS: duration(15),
  PARLEY_TOOL_SECONDS: duration(30),
  PARLEY_BODY_SECONDS: duration(30),
  PARLEY_BODY_IDLE_SECONDS: duration(10),
  PARLEY_UPLOAD_IDLE_SECONDS: duration(60),
  PARLEY_SHUTDOWN_SECONDS: duration(25),
})
export type Environment = z.infer<typeof Environment>

/** The variables whose value can stand in a file instead, named by the same variable with `_FILE` at its end. */
export const secretNames = [
  'DATABASE_URL',
  'PARLEY_SECRET',
  'PARLEY_SECRET_PREVIOUS',
  'PARLEY_PARENT_KEY',
  'PARLEY_GATEWAY_API_KEY',
  'PARLEY_PROXY_SECRET',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
] as const

/** Every name the service reads, `_FILE` twins included. */
export const knownNames: readonly string[] = [
  ...Object.keys(Environment.shape),
  ...secretNames.map((name) => `${name}_FILE`),
]
