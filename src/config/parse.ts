/** Turns the environment into the one Config the service runs on; the only reader of `process.env`. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { StartupError } from '../lib/errors.ts'
import { listForwardingProblems, listGivenProblems, listNotices } from './checks.ts'
import type { Config } from './config.ts'
import { Environment, secretNames } from './environment.ts'
import type { ReadConfigFile } from './file.ts'
import { type Given, listS3Problems, toConfig, toProvider } from './to-config.ts'

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
  const { readConfigFile } = await import('./file.ts')
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
