/** Turns the environment into the one Config the service runs on; the only reader of `process.env`. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import type { AddressBlock } from './address-blocks.ts'
import type { ReadConfigFile } from './config-file.ts'
import type { McpServerConfig } from './config-mcp.ts'
import { listForwardingProblems, listGivenProblems, listNotices } from './config-problems.ts'
import { listS3Problems, type S3Config } from './config-s3.ts'
import { type Given, toConfig, toProvider } from './config-settings.ts'
import type { TracingConfig } from './config-tracing.ts'
import { Environment, secretNames } from './environment.ts'
import { StartupError } from './startup-error.ts'

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

/** Everything that is wrong with the environment, in one error; no sentence holds a value. */
export class ConfigError extends StartupError {
  override readonly name = 'ConfigError'
  /** One sentence per variable. */
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    const heading = problems.length === 1 ? 'A setting is wrong' : `${problems.length} settings are wrong`
    const lines = problems.map((problem) => `  - ${problem}`)
    super([`${heading} (.env.example explains them all):`, ...lines].join('\n'))
    this.problems = problems
  }
}

/**
 * The configuration of this process; a `.env` file in its folder counts where the environment says nothing.
 * @throws ConfigError
 * @throws StartupError when there is such a file and this user may not read it.
 */
export async function loadConfig(): Promise<ParsedConfig> {
  return parseConfig({ ...(await readDotEnv()), ...withoutBlanks(process.env) })
}

async function readDotEnv(): Promise<NodeJS.Dict<string>> {
  const path = resolve('.env')
  try {
    return parseEnv(await readFile(path, 'utf8'))
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (code === 'ENOENT') return {}
    throw new StartupError(`The file ${path} cannot be read (${code ?? 'unknown reason'}).`, { cause })
  }
}

/** A configuration, and what its operator should be told about it at start. */
export interface ParsedConfig {
  readonly config: Config
  readonly warnings: readonly string[]
}

/**
 * Reads a configuration from environment variables and the files their `_FILE` twins name; spaces around a value do not count,
 * and an empty value is an unset one. Decision: 2.
 * @throws ConfigError that lists everything wrong at once.
 */
export async function parseConfig(
  variables: Readonly<Record<string, string | undefined>>,
): Promise<ParsedConfig> {
  const given = withoutBlanks(variables)
  const fileProblems = await readSecretFiles(given)
  const file = await readFileOf(given)
  const parsed = Environment.safeParse(given)
  const problems = [
    ...fileProblems,
    ...(parsed.error?.issues.map((issue) => `${String(issue.path[0])} ${issue.message}.`) ?? []),
    ...listGivenProblems(given),
    ...(parsed.data === undefined
      ? []
      : [...listForwardingProblems(parsed.data), ...listS3Problems(parsed.data)]),
    ...file.problems,
  ]
  if (problems.length > 0 || parsed.data === undefined) throw new ConfigError(problems)
  // Nobody who names providers and no backend wants the mock backend beside them.
  const isFileAlone = given.PARLEY_BACKEND === undefined && file.providers.length > 0
  const providers = isFileAlone ? file.providers : [toProvider(parsed.data), ...file.providers]
  return {
    config: toConfig(parsed.data, providers, file.mcp, given.PATH),
    warnings: listNotices(given)
      .filter(({ name }) => !file.variables.has(name))
      .map(({ notice }) => notice),
  }
}

/** What the file says that `PARLEY_CONFIG` names; only its own code is loaded when there is none. */
async function readFileOf(given: Given): Promise<ReadConfigFile> {
  if (given.PARLEY_CONFIG === undefined) return { providers: [], mcp: [], problems: [], variables: new Set() }
  const { readConfigFile } = await import('./config-file.ts')
  return readConfigFile(resolve(given.PARLEY_CONFIG), given)
}

function withoutBlanks(variables: Readonly<Record<string, string | undefined>>): Given {
  const trimmed = Object.entries(variables).map(([name, text]) => [name, text?.trim() ?? ''] as const)
  return Object.fromEntries(trimmed.filter(([, text]) => text !== ''))
}

/** Puts the text of secret files where their variables would be; answers with what went wrong. */
async function readSecretFiles(given: Given): Promise<string[]> {
  const problems: string[] = []
  for (const name of secretNames) {
    const twin = `${name}_FILE`
    const path = given[twin]
    if (path === undefined) continue
    if (given[name] !== undefined) {
      problems.push(`${name} and ${twin} are both set; keep one of them.`)
      continue
    }
    try {
      const text = (await readFile(path, 'utf8')).trim()
      if (text === '') problems.push(`${twin} names an empty file.`)
      else given[name] = text
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      problems.push(`${twin} names a file that cannot be read (${code ?? 'unknown reason'}).`)
    }
  }
  return problems
}
