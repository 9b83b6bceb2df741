/** Reads the YAML file that `PARLEY_CONFIG` names: what does not fit into single variables, such as several providers. */
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { ServiceError } from '../lib/errors.ts'
import type { Path } from '../lib/formats/json.ts'
import { keyOffsetOf, readYaml, renderFault, type YamlMapping } from '../lib/formats/yaml.ts'
import type { McpServerConfig, ProviderConfig } from './config.ts'
import { listMcpServers, listWrongMcpNames, McpSection } from './mcp.ts'
import { createReferences, type Fault, type Variables } from './references.ts'
import {
  findNameProblem,
  gatewayUrl,
  isMapping,
  LOCAL_URL,
  localContext,
  localThreads,
  localUrl,
  mappingOf,
  visibleText,
} from './values.ts'

/** What a file says, and everything that is wrong with it. */
export interface ReadConfigFile {
  readonly providers: readonly ProviderConfig[]
  readonly mcp: readonly McpServerConfig[]
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

const Local = mappingOf({
  kind: z.literal('local'),
  url: localUrl().optional(),
  model: z.string({ error: 'must be text; put it in quotes' }).min(1, 'must not be empty').optional(),
  threads: numberOrText(localThreads()).optional(),
  context: numberOrText(localContext()).optional(),
}).superRefine(({ url, model, threads, context }, issues) => {
  if (url !== undefined && model !== undefined)
    issues.addIssue({ code: 'custom', path: ['model'], message: 'stands beside url; keep one of them' })
  for (const [key, value] of Object.entries({ threads, context })) {
    if (model === undefined && value !== undefined)
      issues.addIssue({
        code: 'custom',
        path: [key],
        message: 'is for a model of this process: it needs model',
      })
  }
})

const Provider = z.preprocess(
  (value) => (isMapping(value) && !('kind' in value) ? { ...value, kind: 'gateway' } : value),
  z.discriminatedUnion('kind', [Gateway, Local, Mock], {
    error: ({ code }) => (code === 'invalid_union' ? 'must be gateway, local or mock' : 'must be a mapping'),
  }),
)

const ConfigFile = mappingOf({
  providers: z.record(z.string(), Provider, { error: 'must be a mapping of names to providers' }).default({}),
  mcp: McpSection.default({}),
})

/**
 * Reads the file at an absolute path; `${NAME}` in its texts stands for that environment variable. The provider that
 * `PARLEY_BACKEND` sets keeps its name. Decision: 2.
 */
export async function readConfigFile(path: string, variables: Variables): Promise<ReadConfigFile> {
  const read = await readMapping(path)
  if (typeof read === 'string') return { providers: [], mcp: [], problems: [read], variables: new Set() }
  const references = createReferences(variables)
  const parsed = ConfigFile.safeParse(references.resolve(read.value))
  const faults = [
    ...references.faults,
    ...listIssues(parsed.error, references.faults),
    ...listWrongNames(read.value.providers, variables.PARLEY_BACKEND),
    ...listWrongMcpNames(read.value.mcp),
  ].map((fault) => ({ ...fault, offset: keyOffsetOf(read, fault.path) }))
  return {
    providers: Object.entries(parsed.data?.providers ?? {}).map(([name, provider]) =>
      toProvider(name, provider, dirname(path)),
    ),
    mcp: listMcpServers(parsed.data?.mcp ?? {}, variables),
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

/** A provider as the service knows it; the path of a model is one from the file's own folder. */
function toProvider(name: string, provider: z.infer<typeof Provider>, folder: string): ProviderConfig {
  if (provider.kind === 'mock') return { kind: 'mock', name }
  if (provider.kind === 'gateway')
    return { kind: 'gateway', name, url: provider.url, apiKey: provider.api_key }
  const { url = LOCAL_URL, model, threads, context } = provider
  if (model === undefined) return { kind: 'local', name, url }
  return { kind: 'local-model', name, path: resolve(folder, model), threads, contextTokens: context }
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
    const wrong = findNameProblem(name)
    if (wrong !== undefined) return { path, problem: wrong }
    if (name === 'agent') return { path, problem: 'is not allowed as a name: agents are called agent/…' }
    if (name === taken) return { path, problem: `is already the provider that PARLEY_BACKEND=${name} sets` }
    return []
  })
}

/** A number of YAML is read as the text of a variable is, which a reference makes it anyway. */
function numberOrText<Value>(text: z.ZodType<Value, string>) {
  return z.preprocess((value) => (typeof value === 'number' ? String(value) : value), text)
}
