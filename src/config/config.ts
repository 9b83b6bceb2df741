/** TODO */
import type { AddressBlock } from '../lib/net.ts'
import type { Environment } from './environment.ts'

/** An MCP server, under the name that its tools are prefixed with. */
export type McpServerConfig =
  | {
      readonly kind: 'http'
      readonly name: string
      readonly url: string
      /** Sent with every request, to the URL's origin only. */
      readonly headers: Readonly<Record<string, string>>
    }
  | {
      readonly kind: 'stdio'
      readonly name: string
      readonly command: string
      readonly args: readonly string[]
      /** Its whole environment: what the operator names, and the search path. */
      readonly env: Readonly<Record<string, string>>
      /** Undefined: the service's own. */
      readonly cwd: string | undefined
    }

/** A bucket that bytes are kept in, and how it is reached. */
export interface S3Config {
  readonly bucket: string
  /** Stands before every name in the bucket; empty, or with a slash at its end. */
  readonly prefix: string
  /** Where it is, without a slash at the end; undefined = at AWS. */
  readonly endpoint: string | undefined
  readonly region: string
  /** The bucket stands in the path of every URL, and not before the host name. */
  readonly forcePathStyle: boolean
  /** Undefined = what AWS gives the machine or the container; only for a bucket at AWS. */
  readonly credentials: S3Credentials | undefined
}

export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** Comes with credentials that are lent for a while. */
  readonly sessionToken: string | undefined
}

/** Where traces are sent to. */
export interface TracingConfig {
  /** Takes OTLP over HTTP. */
  readonly url: string
  /** Sent with every batch; they may hold a key. */
  readonly headers: Readonly<Record<string, string>>
  readonly serviceName: string
  readonly sampler: Sampler
}

/** Which requests are traced. */
export interface Sampler {
  /** A caller who says whether it traces is followed in that. */
  readonly followsCaller: boolean
  /** Of all others, from 0 to 1. */
  readonly share: number
}

/** A source of answers, under the name that operators and callers know it by. */
export type ProviderConfig =
  | { readonly kind: 'mock'; readonly name: string }
  /** `url` ends in `/v1`, without a slash after it. */
  | {
      readonly kind: 'gateway'
      readonly name: string
      readonly url: string
      readonly apiKey: string | undefined
    }
  /** A runner of models on this machine, such as Ollama; its `url` is as a gateway's. */
  | { readonly kind: 'local'; readonly name: string; readonly url: string }
  | LocalModelConfig

/** A model that runs in this process. */
export interface LocalModelConfig {
  readonly kind: 'local-model'
  readonly name: string
  /** The absolute path of its GGUF file. */
  readonly path: string
  /** Undefined = as many as this machine runs at once. */
  readonly threads: number | undefined
  /** Tokens of context for each answer; undefined = the model's own, 8192 at most. */
  readonly contextTokens: number | undefined
}

/** How the proxy in front tells who is calling. Decision: 10. */
export interface ForwardedAuthConfig {
  /** What the proxy must send along; undefined when its address alone is believed. */
  readonly proxySecret: string | undefined
  /** The names of its headers, in lower case. */
  readonly headers: Readonly<Record<ForwardedField, string>>
}

/** What a proxy can tell of a caller. */
export type ForwardedField = 'email' | 'user' | 'preferredUsername' | 'firstName' | 'lastName' | 'groups'

/** What the operator chose; it holds secrets, so it is never logged whole. */
export interface Config {
  readonly server: {
    /** 0 = any free port. */
    readonly port: number
    readonly host: string
    /** Where clients reach the service, without a slash at the end; undefined when the operator did not say. */
    readonly publicUrl: string | undefined
    /** Lower-case `Host` headers that are answered; empty = any. */
    readonly allowedHosts: readonly string[]
    /** Peers whose forwarding headers are believed. */
    readonly trustedProxies: readonly AddressBlock[]
  }
  /** Undefined: no header says who is calling. */
  readonly forwardedAuth: ForwardedAuthConfig | undefined
  /** Undefined = nothing is traced. */
  readonly tracing: TracingConfig | undefined
  /** What whoever reads the metrics from elsewhere presents; undefined = nobody can. */
  readonly metricsToken: string | undefined
  /** Who may administrate, in the form addresses are compared in. */
  readonly adminEmails: readonly string[]
  readonly logLevel: Environment['LOG_LEVEL']
  /** An absolute path, or `:memory:` to keep nothing. */
  readonly dataDir: string
  /** The PostgreSQL database that the rows are kept in, with its password; undefined = SQLite in the data directory. */
  readonly databaseUrl: string | undefined
  /** What replicas count in and talk through, with its password; undefined = the PostgreSQL database, where there is one. */
  readonly redisUrl: string | undefined
  /** The bucket that the bytes of files are kept in; undefined = the data directory. */
  readonly s3: S3Config | undefined
  /** The master key, 32 bytes or more; undefined = the one in the data directory. */
  readonly secret: string | undefined
  /** Master keys of before: good for what was made with them, never for anything new. */
  readonly formerSecrets: readonly string[]
  /** A parent key to register at start. */
  readonly parentKey: string | undefined
  /** At least one, no two of the same name; the environment's comes first. */
  readonly providers: readonly ProviderConfig[]
  readonly defaultModel: string | undefined
  readonly defaultEmbeddingModel: string | undefined
  /** Servers whose tools agents may use, no two of the same name. */
  readonly mcp: readonly McpServerConfig[]
  /** The host's module, as an absolute path. */
  readonly hooks: string | undefined
  /** How long single calls are kept; their daily sums stay for good. */
  readonly usageRetentionDays: number
  /** Requests a minute, streams at once (both 0 = no limit), the largest body of a chat or of embeddings, and the largest file. */
  readonly limits: {
    readonly parent: number
    readonly agent: number
    readonly agentAddress: number
    readonly authFailures: number
    readonly streams: { readonly parent: number; readonly agent: number; readonly address: number }
    readonly maxBodyBytes: number
    /** The same for agent keys; never more than `maxBodyBytes`. */
    readonly maxAgentBodyBytes: number
    readonly maxFileBytes: number
    readonly maxUploadBytes: number
    /** Of everything a parent key keeps; 0 = no limit. */
    readonly storageQuotaBytes: number
    /** Calls of backends per request, the first one included. */
    readonly backendAttempts: number
  }
  /** What one conversion of an upload may take, where its programs are looked for, as in `PATH`, and how often it is tried. */
  readonly conversion: {
    readonly wallMs: number
    readonly memoryBytes: number
    readonly searchPath: string
    /** How often a file that cannot be converted is tried. */
    readonly tries: number
  }
  /** What the chat widget may do besides talking to this server. Decision: 11. */
  readonly widget: {
    /** Of other servers that it may call. */
    readonly connectOrigins: readonly string[]
    /** Whether a page may hand it the key of a provider: a real secret that everybody could read there. */
    readonly isProviderKeyAllowed: boolean
  }
  readonly uploads: {
    /** Whether bytes are on the disk before their sender is told that they arrived. */
    readonly isSynced: boolean
    /** An unfinished upload goes so long after its last bytes. */
    readonly expirySeconds: number
  }
  /** When a model rests: after so many calls (0 = never) in the window, half of them failed. */
  readonly breaker: { readonly calls: number; readonly windowMs: number; readonly restMs: number }
  readonly timings: {
    readonly backendConnectMs: number
    /** Per attempt. */
    readonly backendFirstByteMs: number
    /** Over all attempts. */
    readonly backendFirstEventMs: number
    readonly backendIdleMs: number
    /** Of an answer that is not streamed. */
    readonly backendTotalMs: number
    readonly streamMaxMs: number
    /** Of one call of a tool that runs here. */
    readonly toolMs: number
    /** Of silence on a stream, after which a comment is sent. */
    readonly heartbeatMs: number
    /** For a whole JSON body. */
    readonly bodyMs: number
    readonly bodyIdleMs: number
    /** Of silence in the middle of an upload. */
    readonly uploadIdleMs: number
    /** For running streams, after the signal to stop. */
    readonly shutdownMs: number
  }
}
