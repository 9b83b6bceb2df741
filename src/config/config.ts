/** Builds the service's configuration from validated settings. */
import { resolve } from 'node:path'
import type { PriceEntry } from '../prices/schema.ts'
import type { Settings } from './settings.ts'

/** The validated configuration. It contains secrets, so never log it as a whole. */
export type Config = ReturnType<typeof toConfig>

/**
 * A model provider. `name` identifies it for operators and clients. The name of a provider that is configured
 * through environment variables is the value of `PARLEY_BACKEND`.
 */
export type ProviderConfig =
  | { readonly kind: 'mock'; readonly name: string }
  | {
      readonly kind: 'gateway'
      readonly name: string
      /** Ends in `/v1`, unless an administrator added the provider. */
      readonly url: string
      readonly apiKey: string | undefined
      /** The vendor in the price list; determined from the URL if not set. */
      readonly vendor?: string | undefined
      /** Whether budgets book the reservation of a request whose connection was lost; `book` by default. */
      readonly unknownOutcome?: 'book' | 'release' | undefined
      /** The measure of answers in budgets; `reported` by default. */
      readonly metering?: 'reported' | 'bytes' | undefined
    }
  /** A local model server such as Ollama. */
  | {
      readonly kind: 'local'
      readonly name: string
      readonly url: string
      /** Only for a provider that an administrator added. */
      readonly apiKey?: string | undefined
    }
  | LocalModelConfig

export interface LocalModelConfig {
  readonly kind: 'local-model'
  readonly name: string
  /** Absolute path of the GGUF file. */
  readonly path: string
  /** If undefined, uses one thread per available processor. */
  readonly threads: number | undefined
  /** Context size per response, in tokens. If undefined, uses the model's maximum, but at most 8192. */
  readonly contextTokens: number | undefined
}

/** An MCP server; `name` prefixes the names of its tools. */
export type McpServerConfig =
  | {
      readonly kind: 'http'
      readonly name: string
      readonly url: string
      /** Sent with every request, but only to the origin of `url`. */
      readonly headers: Readonly<Record<string, string>>
    }
  | {
      readonly kind: 'stdio'
      readonly name: string
      readonly command: string
      readonly args: readonly string[]
      /** The program's complete environment. */
      readonly env: Readonly<Record<string, string>>
      /** If undefined, uses the service's working directory. */
      readonly cwd: string | undefined
    }

export type S3Config = NonNullable<ReturnType<typeof toS3Config>>
export type TracingConfig = NonNullable<ReturnType<typeof toTracingConfig>>
export type ForwardedAuthConfig = NonNullable<ReturnType<typeof toForwardedAuthConfig>>
export type ForwardedField = keyof ForwardedAuthConfig['headers']

/** Receives the events of the whole installation. */
export interface OperatorWebhookConfig {
  readonly url: string
  readonly secret: string
  readonly events: readonly string[]
}

/** Dated prices, keyed by `provider/model`. */
export type ConfiguredPrices = Readonly<Record<string, readonly PriceEntry[]>>

/** The sections of the configuration file apart from the providers. */
export interface FileSections {
  readonly mcp: readonly McpServerConfig[]
  readonly prices: ConfiguredPrices
  readonly webhooks: readonly OperatorWebhookConfig[]
}

const DEFAULT_SEARCH_PATH = '/usr/local/bin:/usr/bin:/bin'

export function toConfig(
  settings: Settings,
  providers: readonly ProviderConfig[],
  { mcp, prices, webhooks }: FileSections,
  searchPath = DEFAULT_SEARCH_PATH,
) {
  return {
    server: toServerConfig(settings),
    forwardedAuth: toForwardedAuthConfig(settings),
    tracing: toTracingConfig(settings),
    metricsToken: settings.PARLEY_METRICS_TOKEN,
    adminEmails: settings.PARLEY_ADMIN_EMAILS ?? [],
    logLevel: settings.LOG_LEVEL,
    /** An absolute path, or `:memory:`. */
    dataDir: settings.PARLEY_DATA_DIR === ':memory:' ? ':memory:' : resolve(settings.PARLEY_DATA_DIR),
    databaseUrl: settings.DATABASE_URL,
    redisUrl: settings.REDIS_URL,
    s3: keepsRows(settings) ? toS3Config(settings) : undefined,
    secret: settings.PARLEY_SECRET,
    formerSecrets: settings.PARLEY_SECRET_PREVIOUS ?? [],
    parentKey: settings.PARLEY_PARENT_KEY,
    providers,
    consoleProviders: settings.PARLEY_CONSOLE_PROVIDERS,
    defaultModel: settings.PARLEY_DEFAULT_MODEL,
    defaultEmbeddingModel: settings.PARLEY_DEFAULT_EMBEDDING_MODEL,
    ...{ mcp, prices: toPricesConfig(settings, prices) },
    hooks: settings.PARLEY_HOOKS === undefined ? undefined : resolve(settings.PARLEY_HOOKS),
    usageRetentionDays: settings.PARLEY_USAGE_RETENTION_DAYS,
    conversations: toConversationsConfig(settings),
    webhooks: toWebhooksConfig(settings, webhooks),
    limits: {
      parent: settings.PARLEY_RATE_LIMIT_PARENT,
      agent: settings.PARLEY_RATE_LIMIT_AGENT,
      agentAddress: settings.PARLEY_RATE_LIMIT_AGENT_ADDRESS,
      uploadToken: settings.PARLEY_RATE_LIMIT_UPLOAD_TOKEN,
      authFailures: settings.PARLEY_RATE_LIMIT_AUTH_FAILURES,
      streams: {
        parent: settings.PARLEY_MAX_STREAMS_PARENT,
        agent: settings.PARLEY_MAX_STREAMS_AGENT,
        address: settings.PARLEY_MAX_STREAMS_ADDRESS,
      },
      maxBodyBytes: settings.PARLEY_MAX_BODY_BYTES,
      maxAgentBodyBytes: Math.min(settings.PARLEY_MAX_BODY_BYTES_AGENT, settings.PARLEY_MAX_BODY_BYTES),
      maxFileBytes: settings.PARLEY_MAX_FILE_BYTES,
      maxUploadBytes: settings.PARLEY_MAX_UPLOAD_BYTES,
      agents: settings.PARLEY_MAX_AGENTS,
      budgetOutputTokens: settings.PARLEY_BUDGET_OUTPUT_TOKENS,
      storageQuotaBytes: settings.PARLEY_STORAGE_QUOTA_BYTES,
      backendAttempts: settings.PARLEY_BACKEND_ATTEMPTS,
    },
    budgets: toBudgetsConfig(settings),
    conversion: {
      wallMs: toMs(settings.PARLEY_CONVERSION_SECONDS),
      memoryBytes: settings.PARLEY_CONVERSION_MEMORY_BYTES,
      searchPath,
      tries: settings.PARLEY_CONVERSION_TRIES,
    },
    widget: {
      connectOrigins: settings.PARLEY_WIDGET_CONNECT_ORIGINS ?? [],
      isProviderKeyAllowed: settings.PARLEY_WIDGET_ALLOW_PROVIDER_KEY,
    },
    uploads: {
      isSynced: settings.PARLEY_UPLOAD_FSYNC,
      expirySeconds: settings.PARLEY_UPLOAD_EXPIRY_SECONDS,
    },
    breaker: {
      calls: settings.PARLEY_BREAKER_CALLS,
      windowMs: toMs(settings.PARLEY_BREAKER_WINDOW_SECONDS),
      restMs: toMs(settings.PARLEY_BREAKER_REST_SECONDS),
    },
    timings: toTimings(settings),
  } as const
}

function toWebhooksConfig(settings: Settings, ofOperator: FileSections['webhooks']) {
  return {
    isAllowed: settings.PARLEY_WEBHOOKS === 'allowed',
    /** Hosts and address ranges that may be private, use http, and use any port. */
    allow: settings.PARLEY_WEBHOOK_ALLOW ?? [],
    ofOperator,
  }
}

function toPricesConfig({ PARLEY_PRICES: file }: Settings, configured: ConfiguredPrices) {
  return {
    configured,
    /** An absolute path; undefined for the shipped list. */
    file: file === undefined ? undefined : resolve(file),
  }
}

function toServerConfig(settings: Settings) {
  return {
    port: settings.PORT,
    host: settings.HOST,
    publicUrl: settings.PARLEY_PUBLIC_URL,
    isDevelopment: settings.PARLEY_DEVELOPMENT,
    allowedHosts: settings.PARLEY_ALLOWED_HOSTS ?? [],
    trustedProxies: settings.PARLEY_TRUSTED_PROXIES ?? [],
  }
}

function toBudgetsConfig(settings: Settings) {
  return {
    minOutputTokens: settings.PARLEY_BUDGET_MIN_OUTPUT_TOKENS,
    waitMs: toMs(settings.PARLEY_BUDGET_WAIT_SECONDS),
    timeZone: settings.PARLEY_BUDGET_TIMEZONE,
    /** Nano-dollars; undefined for no budget. */
    defaultAgentNanoUsd: settings.PARLEY_BUDGET_DEFAULT_AGENT_USD,
  } as const
}

function toTimings(settings: Settings) {
  return {
    backendConnectMs: toMs(settings.PARLEY_BACKEND_CONNECT_SECONDS),
    backendFirstByteMs: toMs(settings.PARLEY_BACKEND_FIRST_BYTE_SECONDS),
    backendFirstEventMs: toMs(settings.PARLEY_BACKEND_FIRST_EVENT_SECONDS),
    backendIdleMs: toMs(settings.PARLEY_BACKEND_IDLE_SECONDS),
    backendTotalMs: toMs(settings.PARLEY_BACKEND_TOTAL_SECONDS),
    streamMaxMs: toMs(settings.PARLEY_STREAM_MAX_SECONDS),
    toolMs: toMs(settings.PARLEY_TOOL_SECONDS),
    heartbeatMs: toMs(settings.PARLEY_HEARTBEAT_SECONDS),
    bodyMs: toMs(settings.PARLEY_BODY_SECONDS),
    bodyIdleMs: toMs(settings.PARLEY_BODY_IDLE_SECONDS),
    uploadIdleMs: toMs(settings.PARLEY_UPLOAD_IDLE_SECONDS),
    shutdownMs: toMs(settings.PARLEY_SHUTDOWN_SECONDS),
  } as const
}

function toMs(durationSeconds: number): number {
  return Math.round(durationSeconds * 1000)
}

export function keepsRows(settings: Pick<Partial<Settings>, 'DATABASE_URL' | 'PARLEY_DATA_DIR'>): boolean {
  return settings.DATABASE_URL !== undefined || settings.PARLEY_DATA_DIR !== ':memory:'
}

function toForwardedAuthConfig(settings: Settings) {
  if (!settings.PARLEY_TRUST_FORWARDED_AUTH) return undefined
  const headers = {
    email: settings.PARLEY_HEADER_EMAIL,
    user: settings.PARLEY_HEADER_USER,
    preferredUsername: settings.PARLEY_HEADER_PREFERRED_USERNAME,
    firstName: settings.PARLEY_HEADER_FIRST_NAME,
    lastName: settings.PARLEY_HEADER_LAST_NAME,
    groups: settings.PARLEY_HEADER_GROUPS,
  } as const
  // Without a secret, the server trusts a proxy by its IP address alone.
  return { proxySecret: settings.PARLEY_PROXY_SECRET, headers } as const
}

function toTracingConfig(settings: Settings) {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: base, OTEL_TRACES_SAMPLER: sampler } = settings
  const url = settings.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? (base && `${base}/v1/traces`)
  if (url === undefined) return undefined
  const isRatio = sampler.endsWith('traceidratio')
  return {
    url,
    headers: settings.OTEL_EXPORTER_OTLP_HEADERS ?? {},
    serviceName: settings.OTEL_SERVICE_NAME,
    sampler: {
      followsCaller: sampler.startsWith('parentbased_'),
      share: isRatio ? settings.OTEL_TRACES_SAMPLER_ARG : sampler.endsWith('always_on') ? 1 : 0,
    },
  } as const
}

function toS3Config(settings: Settings) {
  const { S3_BUCKET: bucket, S3_PREFIX: prefix, S3_ENDPOINT: endpoint } = settings
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = settings
  if (bucket === undefined) return undefined
  return {
    bucket,
    /** Empty, or ends with a slash. */
    prefix: prefix === undefined ? '' : `${prefix.replace(/\/$/, '')}/`,
    /** Undefined for AWS. */
    endpoint,
    // The default region; S3-compatible servers without regions expect it.
    region: settings.S3_REGION ?? settings.AWS_REGION ?? 'us-east-1',
    // Uses path-style addressing, because servers other than AWS rarely support one host name per bucket.
    forcePathStyle: settings.S3_FORCE_PATH_STYLE ?? endpoint !== undefined,
    /** If undefined, uses the credentials that AWS provides to the machine or container. */
    credentials:
      accessKeyId === undefined || secretAccessKey === undefined
        ? undefined
        : { accessKeyId, secretAccessKey, sessionToken: settings.AWS_SESSION_TOKEN },
  } as const
}

export function toProvider(settings: Settings): ProviderConfig {
  const { PARLEY_BACKEND: kind, PARLEY_GATEWAY_URL: gatewayUrl, PARLEY_LOCAL_MODEL: model } = settings
  if (kind === 'gateway' && gatewayUrl !== undefined)
    return { kind, name: 'gateway', url: gatewayUrl, apiKey: settings.PARLEY_GATEWAY_API_KEY }
  if (kind !== 'local') return { kind: 'mock', name: 'mock' }
  if (model === undefined) return { kind, name: 'local', url: settings.PARLEY_LOCAL_URL }
  return {
    kind: 'local-model',
    name: 'local',
    path: resolve(model),
    threads: settings.PARLEY_LOCAL_THREADS,
    contextTokens: settings.PARLEY_LOCAL_CONTEXT,
  }
}

function toConversationsConfig(settings: Settings) {
  return {
    isAllowed: settings.PARLEY_CONVERSATIONS === 'allowed',
    maxDays: settings.PARLEY_CONVERSATIONS_MAX_DAYS,
    /** 0 means unlimited. */
    maxBytes: settings.PARLEY_CONVERSATIONS_MAX_BYTES,
    withoutAgent: settings.PARLEY_STORE_WITHOUT_AGENT,
    followers: {
      parent: settings.PARLEY_MAX_FOLLOWERS_PARENT,
      agent: settings.PARLEY_MAX_FOLLOWERS_AGENT,
      address: settings.PARLEY_MAX_FOLLOWERS_ADDRESS,
    },
    withoutAgentDays: settings.PARLEY_STORE_WITHOUT_AGENT_DAYS,
    replaySeconds: settings.PARLEY_REPLAY_HOURS * 3600,
    flushMs: settings.PARLEY_FLUSH_MS,
    reconnectMs: toMs(settings.PARLEY_RECONNECT_SECONDS),
  }
}
