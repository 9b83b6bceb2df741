/** Turns checked settings into the Config. */
import { resolve } from 'node:path'
import type {
  Config,
  ForwardedAuthConfig,
  ProviderConfig,
  S3Config,
  S3Credentials,
  Sampler,
  TracingConfig,
} from './config.ts'
import type { Environment } from './environment.ts'

/** Undefined when nothing is traced. An endpoint for traces is taken as it is, one for all kinds of news gets their usual path. */
export function toTracingConfig(given: Environment): TracingConfig | undefined {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: all, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: own } = given
  const url = own ?? (all === undefined ? undefined : `${all}/v1/traces`)
  if (url === undefined) return undefined
  return {
    url,
    headers: given.OTEL_EXPORTER_OTLP_HEADERS ?? {},
    serviceName: given.OTEL_SERVICE_NAME,
    sampler: toSampler(given),
  }
}

function toSampler({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: ratio }: Environment): Sampler {
  const followsCaller = name.startsWith('parentbased_')
  if (name.endsWith('traceidratio')) return { followsCaller, share: ratio }
  return { followsCaller, share: name.endsWith('always_on') ? 1 : 0 }
}

/** The region that S3-compatible servers take when they know none. */
const USUAL_REGION = 'us-east-1'

/** The bucket the settings name; undefined when they name none. */
export function toS3Config(given: Environment): S3Config | undefined {
  const { S3_BUCKET: bucket, S3_PREFIX: prefix, S3_ENDPOINT: endpoint } = given
  if (bucket === undefined) return undefined
  return {
    bucket,
    prefix: prefix === undefined ? '' : `${prefix.replace(/\/$/, '')}/`,
    endpoint,
    region: given.S3_REGION ?? given.AWS_REGION ?? USUAL_REGION,
    // Servers beside AWS seldom have a host name for each bucket.
    forcePathStyle: given.S3_FORCE_PATH_STYLE ?? endpoint !== undefined,
    credentials: toCredentials(given),
  }
}

function toCredentials(given: Environment): S3Credentials | undefined {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = given
  if (accessKeyId === undefined || secretAccessKey === undefined) return undefined
  return { accessKeyId, secretAccessKey, sessionToken: given.AWS_SESSION_TOKEN }
}

/** What is wrong with the settings of a bucket taken together; AWS's own are nobody's business without one. */
export function listS3Problems(given: Environment): string[] {
  if (given.S3_BUCKET === undefined) return []
  const [id, secret] = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'] as const
  const [hasId, hasSecret] = [given[id] !== undefined, given[secret] !== undefined]
  if (hasId !== hasSecret) {
    const [there, missing] = hasId ? [id, secret] : [secret, id]
    return [`${missing} is missing; ${there} is of no use without it.`]
  }
  if (hasId || given.S3_ENDPOINT === undefined) return []
  return [`${id} and ${secret} are missing; S3_ENDPOINT needs them: only AWS lends credentials to machines.`]
}

/** Variables that are set, by name. */
export type Given = Record<string, string>

/** Whether rows outlive the process. */
export function keepsRows({ DATABASE_URL: url, PARLEY_DATA_DIR: dataDir }: Given | Environment): boolean {
  return url !== undefined || dataDir !== ':memory:'
}

/** Where programs lie on most machines. */
const usualPath = '/usr/local/bin:/usr/bin:/bin'

/** The configuration that these settings make, with the providers and MCP servers of the file. */
export function toConfig(
  given: Environment,
  providers: readonly ProviderConfig[],
  mcp: Config['mcp'],
  searchPath = usualPath,
): Config {
  return {
    server: {
      port: given.PORT,
      host: given.HOST,
      publicUrl: given.PARLEY_PUBLIC_URL,
      allowedHosts: given.PARLEY_ALLOWED_HOSTS ?? [],
      trustedProxies: given.PARLEY_TRUSTED_PROXIES ?? [],
    },
    forwardedAuth: given.PARLEY_TRUST_FORWARDED_AUTH
      ? { proxySecret: given.PARLEY_PROXY_SECRET, headers: toForwardedHeaders(given) }
      : undefined,
    tracing: toTracingConfig(given),
    metricsToken: given.PARLEY_METRICS_TOKEN,
    adminEmails: given.PARLEY_ADMIN_EMAILS ?? [],
    logLevel: given.LOG_LEVEL,
    dataDir: given.PARLEY_DATA_DIR === ':memory:' ? ':memory:' : resolve(given.PARLEY_DATA_DIR),
    databaseUrl: given.DATABASE_URL,
    redisUrl: given.REDIS_URL,
    s3: keepsRows(given) ? toS3Config(given) : undefined,
    secret: given.PARLEY_SECRET,
    formerSecrets: given.PARLEY_SECRET_PREVIOUS ?? [],
    parentKey: given.PARLEY_PARENT_KEY,
    providers,
    defaultModel: given.PARLEY_DEFAULT_MODEL,
    mcp,
    hooks: given.PARLEY_HOOKS === undefined ? undefined : resolve(given.PARLEY_HOOKS),
    usageRetentionDays: given.PARLEY_USAGE_RETENTION_DAYS,
    defaultEmbeddingModel: given.PARLEY_DEFAULT_EMBEDDING_MODEL,
    limits: {
      parent: given.PARLEY_RATE_LIMIT_PARENT,
      agent: given.PARLEY_RATE_LIMIT_AGENT,
      agentAddress: given.PARLEY_RATE_LIMIT_AGENT_ADDRESS,
      authFailures: given.PARLEY_RATE_LIMIT_AUTH_FAILURES,
      streams: {
        parent: given.PARLEY_MAX_STREAMS_PARENT,
        agent: given.PARLEY_MAX_STREAMS_AGENT,
        address: given.PARLEY_MAX_STREAMS_ADDRESS,
      },
      maxBodyBytes: given.PARLEY_MAX_BODY_BYTES,
      maxAgentBodyBytes: Math.min(given.PARLEY_MAX_BODY_BYTES_AGENT, given.PARLEY_MAX_BODY_BYTES),
      maxFileBytes: given.PARLEY_MAX_FILE_BYTES,
      maxUploadBytes: given.PARLEY_MAX_UPLOAD_BYTES,
      storageQuotaBytes: given.PARLEY_STORAGE_QUOTA_BYTES,
      backendAttempts: given.PARLEY_BACKEND_ATTEMPTS,
    },
    conversion: {
      wallMs: toMs(given.PARLEY_CONVERSION_SECONDS),
      memoryBytes: given.PARLEY_CONVERSION_MEMORY_BYTES,
      searchPath,
      tries: given.PARLEY_CONVERSION_TRIES,
    },
    widget: {
      connectOrigins: given.PARLEY_WIDGET_CONNECT_ORIGINS ?? [],
      isProviderKeyAllowed: given.PARLEY_WIDGET_ALLOW_PROVIDER_KEY,
    },
    uploads: { isSynced: given.PARLEY_UPLOAD_FSYNC, expirySeconds: given.PARLEY_UPLOAD_EXPIRY_SECONDS },
    breaker: {
      calls: given.PARLEY_BREAKER_CALLS,
      windowMs: toMs(given.PARLEY_BREAKER_WINDOW_SECONDS),
      restMs: toMs(given.PARLEY_BREAKER_REST_SECONDS),
    },
    timings: {
      backendConnectMs: toMs(given.PARLEY_BACKEND_CONNECT_SECONDS),
      backendFirstByteMs: toMs(given.PARLEY_BACKEND_FIRST_BYTE_SECONDS),
      backendFirstEventMs: toMs(given.PARLEY_BACKEND_FIRST_EVENT_SECONDS),
      backendIdleMs: toMs(given.PARLEY_BACKEND_IDLE_SECONDS),
      backendTotalMs: toMs(given.PARLEY_BACKEND_TOTAL_SECONDS),
      streamMaxMs: toMs(given.PARLEY_STREAM_MAX_SECONDS),
      toolMs: toMs(given.PARLEY_TOOL_SECONDS),
      heartbeatMs: toMs(given.PARLEY_HEARTBEAT_SECONDS),
      bodyMs: toMs(given.PARLEY_BODY_SECONDS),
      bodyIdleMs: toMs(given.PARLEY_BODY_IDLE_SECONDS),
      uploadIdleMs: toMs(given.PARLEY_UPLOAD_IDLE_SECONDS),
      shutdownMs: toMs(given.PARLEY_SHUTDOWN_SECONDS),
    },
  }
}

/** The headers in which a proxy says who is calling. */
export function toForwardedHeaders(given: Environment): ForwardedAuthConfig['headers'] {
  return {
    email: given.PARLEY_HEADER_EMAIL,
    user: given.PARLEY_HEADER_USER,
    preferredUsername: given.PARLEY_HEADER_PREFERRED_USERNAME,
    firstName: given.PARLEY_HEADER_FIRST_NAME,
    lastName: given.PARLEY_HEADER_LAST_NAME,
    groups: given.PARLEY_HEADER_GROUPS,
  }
}

/** The provider of the environment; its name is its kind's. Decision: 7. */
export function toProvider(given: Environment): ProviderConfig {
  const { PARLEY_BACKEND: name, PARLEY_GATEWAY_URL: url, PARLEY_GATEWAY_API_KEY: apiKey } = given
  if (name === 'local') return toLocalProvider(given)
  if (name === 'mock' || url === undefined) return { kind: 'mock', name: 'mock' }
  return { kind: name, name, url, apiKey }
}

function toLocalProvider(given: Environment): ProviderConfig {
  const { PARLEY_LOCAL_MODEL: path, PARLEY_LOCAL_URL: url } = given
  if (path === undefined) return { kind: 'local', name: 'local', url }
  return {
    kind: 'local-model',
    name: 'local',
    path: resolve(path),
    threads: given.PARLEY_LOCAL_THREADS,
    contextTokens: given.PARLEY_LOCAL_CONTEXT,
  }
}

function toMs(durationSeconds: number): number {
  return Math.round(durationSeconds * 1000)
}
