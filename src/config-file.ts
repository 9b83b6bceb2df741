/** Reads the YAML file that `PARLEY_CONFIG` names: what does not fit into single variables, such as several providers. */
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { type Path, renderFault } from './agents/refusal.ts'
import { keyOffsetOf, readYaml, type YamlMapping } from './agents/yaml.ts'
import type { ProviderConfig } from './config.ts'
import { createReferences, type Fault, type Variables } from './config-references.ts'
import { gatewayUrl, orMissing, visibleText } from './config-values.ts'
import { ServiceError } from './errors.ts'
import { nearestName } from './nearest-name.ts'

/** What a file says, and everything that is wrong with it. */
export interface ReadConfigFile {
  readonly providers: readonly ProviderConfig[]
  /** One sentence per fault, each with the file, the path in it and the line; none holds a value. */
  readonly problems: readonly string[]
  /** The environment variables it refers to. */
  readonly variables: ReadonlySet<string>
}

const Gateway = mappingOf({
  kind: z.literal('gateway'),
  url: gatewayUrl(),
  api_key: visibleText().optional(),
})

const Mock = mappingOf({ kind: z.literal('mock') })

const Provider = z.preprocess(
  (value) => (isMapping(value) && !('kind' in value) ? { ...value, kind: 'gateway' } : value),
  z.discriminatedUnion('kind', [Gateway, Mock], {
    error: ({ code }) => (code === 'invalid_union' ? 'must be gateway or mock' : 'must be a mapping'),
  }),
)

const ConfigFile = mappingOf({
  providers: z.record(z.string(), Provider, { error: 'must be a mapping of names to providers' }).default({}),
})

/**
 * Reads the file at an absolute path; `${NAME}` in its texts stands for that environment variable. The provider that
 * `PARLEY_BACKEND` sets keeps its name. Decision: 2.
 */
export async function readConfigFile(path: string, variables: Variables): Promise<ReadConfigFile> {
  const read = await readMapping(path)
  if (typeof read === 'string') return { providers: [], problems: [read], variables: new Set() }
  const references = createReferences(variables)
  const parsed = ConfigFile.safeParse(references.resolve(read.value))
  const faults = [
    ...references.faults,
    ...listIssues(parsed.error, references.faults),
    ...listWrongNames(read.value.providers, variables.PARLEY_BACKEND),
  ].map((fault) => ({ ...fault, offset: keyOffsetOf(read, fault.path) }))
  return {
    providers: Object.entries(parsed.data?.providers ?? {}).map(toProvider),
    problems: faults
      .toSorted((one, other) => one.offset - other.offset)
      .map(
        (fault) => `${path}: ${renderFault(read.text, fault.offset, toShown(fault.path), fault.problem)}.`,
      ),
    variables: references.names,
  }
}

/** The mapping in a file, or why there is none. */
async function readMapping(path: string): Promise<YamlMapping | string> {
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => error)
  if (bytes instanceof Error) {
    return `PARLEY_CONFIG names a file that cannot be read (${bytes.code ?? 'unknown reason'}).`
  }
  try {
    // Editors put a byte order mark in front, which the decoder takes away.
    return readYaml(new TextDecoder().decode(bytes), true)
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return `${path}: ${error.message}.`
  }
}

/** `{api_key:secret}` is one key, as the space is missing: what does not look like a key is not shown. */
function toShown(path: Path): Path {
  return path.map((segment) => (/^[\w. -]*$/.test(String(segment)) ? segment : '…'))
}

function toProvider([name, provider]: [string, z.infer<typeof Provider>]): ProviderConfig {
  if (provider.kind === 'mock') return { kind: 'mock', name }
  return { kind: 'gateway', name, url: provider.url, apiKey: provider.api_key }
}

/** What does not fit the schema, but for texts whose references have already been found wrong. */
function listIssues(error: z.ZodError | undefined, known: readonly Fault[]): Fault[] {
  const found = new Set(known.map(({ path }) => JSON.stringify(path)))
  return (error?.issues ?? [])
    .filter(({ path }) => !found.has(JSON.stringify(path)))
    .map(({ path, message }) => ({ path, problem: message }))
}

function listWrongNames(providers: unknown, taken: string | undefined): Fault[] {
  if (!isMapping(providers)) return []
  return Object.keys(providers).flatMap((name) => {
    const path = ['providers', name]
    if (!/^[a-z0-9][a-z0-9_-]{0,31}$/.test(name)) {
      const rule = 'a name must be 1 to 32 small letters, digits, - and _, the first a letter or digit'
      return { path, problem: rule }
    }
    if (name === 'agent') return { path, problem: 'is not allowed as a name: agents are called agent/…' }
    if (name === taken) return { path, problem: `is already the provider that PARLEY_BACKEND=${name} sets` }
    return []
  })
}

/** A mapping of these keys and no others. */
function mappingOf<Shape extends z.ZodRawShape>(shape: Shape) {
  const unknownKey = z.custom<never>(() => false, {
    error: ({ path }) =>
      `is not a key here; the nearest is ${nearestName(String(path?.at(-1)), Object.keys(shape))}`,
  })
  return z.object(shape, { error: orMissing('must be a mapping') }).catchall(unknownKey)
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
