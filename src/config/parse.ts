/** Loads the configuration and reports all problems together. Only this file reads `process.env`. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { closest } from 'fastest-levenshtein'
import { StartupError } from '../lib/errors.ts'
import { type Config, keepsRows, toConfig, toProvider } from './config.ts'
import { Settings, secretNames, settingNames, type Variables } from './settings.ts'

/** Reports all problems with the settings in one error. No message contains a value. */
export class ConfigError extends StartupError {
  override readonly name = 'ConfigError'
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    const heading = problems.length === 1 ? '1 invalid setting' : `${problems.length} invalid settings`
    const lines = problems.map((problem) => `  - ${problem}`)
    super([`${heading} (see .env.example):`, ...lines].join('\n'))
    this.problems = problems
  }
}

export interface ParsedConfig {
  readonly config: Config
  readonly warnings: readonly string[]
}

/**
 * Loads the configuration of this process. The environment takes precedence over a `.env` file in the
 * working directory.
 */
export async function loadConfig(): Promise<ParsedConfig> {
  return parseConfig({ ...(await readDotEnv()), ...dropBlanks(process.env) })
}

async function readDotEnv(): Promise<Variables> {
  const path = resolve('.env')
  try {
    return parseEnv(await readFile(path, 'utf8'))
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return {}
    throw new StartupError(`Cannot read the file ${path} (${codeOf(cause)}).`, { cause })
  }
}

/**
 * Builds the configuration from environment variables and the files that they name. Trims the values; an
 * empty value is treated as unset.
 */
export async function parseConfig(variables: Readonly<Variables>): Promise<ParsedConfig> {
  const given = dropBlanks(variables)
  const secretProblems = await readSecretFiles(given)
  const file = await readConfigFileOf(given)
  const { data: settings, error } = Settings.safeParse(given)
  const problems = [
    ...secretProblems,
    ...(error?.issues.map(({ path, message }) => `${String(path[0])} ${message}.`) ?? []),
    ...listConflicts(given),
    ...(settings === undefined ? [] : listRepeatedHeaders(settings)),
    ...file.problems,
  ]
  if (problems.length > 0 || settings === undefined) throw new ConfigError(problems)
  const isFileAlone = given.PARLEY_BACKEND === undefined && file.providers.length > 0
  const providers = isFileAlone ? file.providers : [toProvider(settings), ...file.providers]
  return {
    config: toConfig(settings, providers, file, given.PATH),
    warnings: listWarnings(given, file.variables),
  }
}

/** Loads the YAML parser only when `PARLEY_CONFIG` is set. */
async function readConfigFileOf(given: Variables) {
  if (given.PARLEY_CONFIG === undefined)
    return { providers: [], mcp: [], prices: {}, webhooks: [], problems: [], variables: new Set<string>() }
  const { readConfigFile } = await import('./file.ts')
  return readConfigFile(resolve(given.PARLEY_CONFIG), given)
}

function dropBlanks(variables: Readonly<Variables>): Variables {
  const trimmed = Object.entries(variables).map(([name, text = '']) => [name, text.trim()])
  return Object.fromEntries(trimmed.filter(([, text]) => text !== ''))
}

/** Reads the files that `_FILE` variables name, and adds their secrets to `given`. Returns the problems. */
async function readSecretFiles(given: Variables): Promise<string[]> {
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
      if (text === '') problems.push(`${twin} refers to an empty file; write the secret to it.`)
      else given[name] = text
    } catch (error) {
      problems.push(`${twin}: cannot read the file (${codeOf(error)}).`)
    }
  }
  return problems
}

function listConflicts(given: Variables): string[] {
  const has = (name: keyof Settings) => given[name] !== undefined
  const problems: string[] = []
  if (given.PARLEY_BACKEND === 'gateway' && !has('PARLEY_GATEWAY_URL'))
    problems.push('PARLEY_GATEWAY_URL is required with PARLEY_BACKEND=gateway.')
  if (given.PARLEY_BACKEND === 'local' && has('PARLEY_LOCAL_URL') && has('PARLEY_LOCAL_MODEL'))
    problems.push('PARLEY_LOCAL_URL and PARLEY_LOCAL_MODEL are both set; keep one of them.')
  const isProxyChecked = has('PARLEY_PROXY_SECRET') || has('PARLEY_TRUSTED_PROXIES')
  if (given.PARLEY_TRUST_FORWARDED_AUTH === 'true' && !isProxyChecked)
    problems.push(
      'PARLEY_TRUST_FORWARDED_AUTH requires PARLEY_PROXY_SECRET or PARLEY_TRUSTED_PROXIES; otherwise any client could claim any identity.',
    )
  if (!has('S3_BUCKET')) return problems
  const [id, secret] = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'] as const
  if (has(id) !== has(secret)) {
    const [present, missing] = has(id) ? [id, secret] : [secret, id]
    problems.push(`${missing} is required because ${present} is set.`)
  } else if (!has(id) && has('S3_ENDPOINT'))
    problems.push(`${id} and ${secret} are required because S3_ENDPOINT is set.`)
  return problems
}

function listRepeatedHeaders(settings: Settings): string[] {
  if (!settings.PARLEY_TRUST_FORWARDED_AUTH) return []
  const names = Object.entries(settings).flatMap(([name, value]) =>
    name.startsWith('PARLEY_HEADER_') ? [value] : [],
  )
  const repeated = names.find((name, index) => names.indexOf(name) !== index)
  return repeated === undefined
    ? []
    : [`Two PARLEY_HEADER_ settings name the same header, ${repeated}; use a different header for each.`]
}

/** Settings that take effect only if another setting is set, or has the given value. */
const dependentSettings: readonly [names: RegExp, needed: keyof Settings, value?: string][] = [
  [/^PARLEY_GATEWAY_/, 'PARLEY_BACKEND', 'gateway'],
  [/^PARLEY_LOCAL_(URL|MODEL)/, 'PARLEY_BACKEND', 'local'],
  [/^PARLEY_LOCAL_(THREADS|CONTEXT)/, 'PARLEY_LOCAL_MODEL'],
  [/^PARLEY_(PROXY_SECRET|HEADER_|ADMIN_EMAILS)/, 'PARLEY_TRUST_FORWARDED_AUTH', 'true'],
  [/^S3_/, 'S3_BUCKET'],
]

/** The variable with the key that `agents apply --url` sends. The server does not read it. */
const CLIENT_KEY = 'PARLEY_KEY'

export function readClientKey(): string | undefined {
  return dropBlanks(process.env)[CLIENT_KEY]
}

/** Returns a warning for each variable that has no effect, unless the configuration file refers to it. */
function listWarnings(given: Variables, referenced: ReadonlySet<string>): string[] {
  const names = Object.keys(given).filter((name) => !referenced.has(name))
  const known = names.filter((name) => settingNames.includes(name))
  const unknown = names.filter(
    (name) => name.startsWith('PARLEY_') && !settingNames.includes(name) && name !== CLIENT_KEY,
  )
  const isUnused = ([, needed, value]: (typeof dependentSettings)[number]) =>
    given[needed] === undefined || (value !== undefined && given[needed] !== value)
  return [
    ...unknown.map(
      (name) => `${name} is not a setting and is ignored; did you mean ${closest(name, settingNames)}?`,
    ),
    ...dependentSettings
      .filter(isUnused)
      .flatMap(([pattern, needed, value]) =>
        known
          .filter((name) => pattern.test(name))
          .map(
            (name) =>
              `${name} is ignored: it requires ${value === undefined ? needed : `${needed}=${value}`}.`,
          ),
      ),
    ...(known.includes('S3_BUCKET') && !keepsRows(given)
      ? ['S3_BUCKET is ignored: PARLEY_DATA_DIR=:memory: does not store any files.']
      : []),
  ]
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? 'unknown reason'
}
