/** Reads model providers, prices, MCP servers and the operator's webhooks from the YAML file in `PARLEY_CONFIG`. */
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { closest } from 'fastest-levenshtein'
import { z } from 'zod'
import { ServiceError } from '../lib/errors.ts'
import { isJsonObject, type Path } from '../lib/formats/json.ts'
import { keyOffsetOf, readYaml, renderFault, type YamlMapping } from '../lib/formats/yaml.ts'
import { PriceEntries } from '../prices/schema.ts'
import type { FileSections, McpServerConfig, ProviderConfig } from './config.ts'
import type { Variables } from './settings.ts'
import { gatewayUrl, LOCAL_URL, localContext, localThreads, localUrl, value, visibleText } from './values.ts'

interface ConfigFile extends FileSections {
  readonly providers: readonly ProviderConfig[]
  /**
   * One sentence per problem, with the file and, if it can be parsed, the path within it and the line. Never
   * contains a value from the file.
   */
  readonly problems: readonly string[]
  /** The environment variables that the file refers to. */
  readonly variables: ReadonlySet<string>
}

interface Fault {
  readonly path: Path
  readonly problem: string
}

/**
 * Reads the file at an absolute path and replaces each `${NAME}` in its strings with that environment
 * variable.
 */
export async function readConfigFile(path: string, variables: Readonly<Variables>): Promise<ConfigFile> {
  const mapping = await readMapping(path)
  if (typeof mapping === 'string')
    return { providers: [], mcp: [], prices: {}, webhooks: [], problems: [mapping], variables: new Set() }
  const references: References = { variables, faults: [], names: new Set() }
  const { data, error } = ConfigFileSchema.safeParse(resolveReferences(mapping.value, [], references))
  const unresolved = new Set(references.faults.map((fault) => JSON.stringify(fault.path)))
  const schemaFaults = (error?.issues ?? [])
    .filter((issue) => !unresolved.has(JSON.stringify(issue.path)))
    .map((issue) => ({ path: issue.path, problem: issue.message }))
  const nameFaults = [
    ...listNameFaults('providers', mapping.value.providers, (name) =>
      findProviderNameProblem(name, variables.PARLEY_BACKEND),
    ),
    ...listNameFaults('mcp', mapping.value.mcp, findMcpNameProblem),
    ...listPricedFaults(mapping.value.prices),
  ]
  const problems = [...references.faults, ...schemaFaults, ...nameFaults]
    .map((fault) => ({ ...fault, offset: keyOffsetOf(mapping, fault.path) }))
    .toSorted((one, other) => one.offset - other.offset)
    .map(
      ({ path: at, problem, offset }) =>
        `${path}: ${renderFault(mapping.text, offset, maskKeys(at), problem)}.`,
    )
  return {
    providers: Object.entries(data?.providers ?? {}).map(([name, provider]) =>
      toProvider(name, provider, dirname(path)),
    ),
    prices: data?.prices ?? {},
    webhooks: data?.webhooks ?? [],
    mcp: Object.entries(data?.mcp ?? {}).map(([name, server]) => toMcpServer(name, server, variables.PATH)),
    problems,
    variables: references.names,
  }
}

async function readMapping(path: string): Promise<YamlMapping | string> {
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => error)
  if (bytes instanceof Error)
    return `PARLEY_CONFIG: cannot read the file (${bytes.code ?? 'unknown reason'}).`
  try {
    // The decoder removes the byte order mark that some editors write.
    return readYaml(new TextDecoder().decode(bytes), true)
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return `${path}: ${error.message}.`
  }
}

/**
 * Masks keys that may contain a secret. Without the space after the colon, `{api_key:secret}` is a mapping
 * with the single key `api_key:secret`.
 */
function maskKeys(path: Path): Path {
  return path.map((segment) => (/^[\w. -]*$/.test(String(segment)) ? segment : '…'))
}

interface References {
  readonly variables: Readonly<Variables>
  readonly faults: Fault[]
  readonly names: Set<string>
}

/** Matches an escaped `${`, a reference, or a `${` that is neither. */
const openings = /\$\$\{|\$\{([A-Za-z_]\w*)\}|\$\{/g

/** Replaces every reference in the strings of a value; `$${` becomes `${`. */
function resolveReferences(value: unknown, path: Path, references: References): unknown {
  if (typeof value === 'string') return resolveText(value, path, references)
  if (Array.isArray(value))
    return value.map((item, index) => resolveReferences(item, [...path, index], references))
  if (!isJsonObject(value)) return value
  const entries = Object.entries(value)
  return Object.fromEntries(
    entries.map(([key, held]) => [key, resolveReferences(held, [...path, key], references)]),
  )
}

function resolveText(text: string, path: Path, { variables, faults, names }: References): string {
  return text.replaceAll(openings, (opening, name: string | undefined) => {
    if (opening === '$${') return '${'
    if (name === undefined) {
      faults.push({ path, problem: 'contains ${ without a variable name; write $${ for a literal ${' })
      return ''
    }
    names.add(name)
    const held = Object.hasOwn(variables, name) ? variables[name] : undefined
    if (held === undefined) faults.push({ path, problem: `refers to ${name}, which is not set` })
    return held ?? ''
  })
}

function listNameFaults(section: string, value: unknown, findProblem: (name: string) => string | undefined) {
  return Object.keys(isJsonObject(value) ? value : {}).flatMap((name): Fault[] => {
    const problem = findNameProblem(name) ?? findProblem(name)
    return problem === undefined ? [] : [{ path: [section, name], problem }]
  })
}

function listPricedFaults(value: unknown): Fault[] {
  return Object.keys(isJsonObject(value) ? value : {}).flatMap((name): Fault[] =>
    /^[^/]+\/./.test(name)
      ? []
      : [{ path: ['prices', name], problem: 'must be a provider and a model, such as far/my-model' }],
  )
}

/** Returns the rule that a provider's or MCP server's name violates. */
export function findNameProblem(name: string): string | undefined {
  if (/^[a-z0-9][a-z0-9_-]{0,31}$/.test(name)) return undefined
  return 'a name must be 1 to 32 lowercase letters, digits, - and _, and start with a letter or digit'
}

function findProviderNameProblem(name: string, backend: string | undefined): string | undefined {
  if (name === 'agent') return 'is a reserved name: model ids that start with agent/ refer to agents'
  return name === backend
    ? `is already taken by the provider that PARLEY_BACKEND=${name} configures`
    : undefined
}

/** Tools are named `<server>__<tool>`, so the server name must not contain the separator. */
function findMcpNameProblem(name: string): string | undefined {
  return name.includes('__') ? 'a name must not contain __' : undefined
}

function orMissing(rule: string): z.core.$ZodErrorMap {
  return ({ input }) => (input === undefined ? 'is missing' : rule)
}

function mappingOf<Shape extends z.ZodRawShape>(shape: Shape) {
  const unknownKey = z.custom<never>(() => false, {
    error: ({ path }) =>
      `is not a known key; the closest match is ${closest(String(path?.at(-1)), Object.keys(shape))}`,
  })
  return z.object(shape, { error: orMissing('must be a mapping') }).catchall(unknownKey)
}

function recordOf(pattern: RegExp, nameProblem: string, text: z.ZodType<string>) {
  return z
    .record(z.string(), text, { error: 'must be a mapping of names to strings' })
    .superRefine((record, context) => {
      for (const key of Object.keys(record).filter((key) => !pattern.test(key)))
        context.addIssue({ code: 'custom', path: [key], message: nameProblem })
    })
}

/** Accepts both a YAML number and a string, because a reference to a variable yields a string. */
function numberOrText<T>(text: z.ZodType<T, string>) {
  return z.preprocess((given) => (typeof given === 'number' ? String(given) : given), text)
}

const Gateway = mappingOf({
  kind: z.literal('gateway'),
  url: gatewayUrl(),
  api_key: visibleText().optional(),
  vendor: visibleText().optional(),
  unknown_outcome: z.enum(['book', 'release'], { error: 'must be book or release' }).optional(),
  metering: z.enum(['reported', 'bytes'], { error: 'must be reported or bytes' }).optional(),
})

const Mock = mappingOf({ kind: z.literal('mock') })

const Local = mappingOf({
  kind: z.literal('local'),
  url: localUrl().optional(),
  model: z.string({ error: 'must be a string; put it in quotes' }).min(1, 'must not be empty').optional(),
  threads: numberOrText(localThreads()).optional(),
  context: numberOrText(localContext()).optional(),
}).superRefine(({ url, model, threads, context }, issues) => {
  const report = (key: string, message: string) => issues.addIssue({ code: 'custom', path: [key], message })
  if (url !== undefined && model !== undefined)
    report('model', 'cannot be combined with url; keep one of them')
  if (model === undefined && threads !== undefined) report('threads', 'requires model')
  if (model === undefined && context !== undefined) report('context', 'requires model')
})

const Provider = z.preprocess(
  (given) => (isJsonObject(given) && !('kind' in given) ? { ...given, kind: 'gateway' } : given),
  z.discriminatedUnion('kind', [Gateway, Local, Mock], {
    error: ({ code }) => (code === 'invalid_union' ? 'must be gateway, local or mock' : 'must be a mapping'),
  }),
)

const mcpUrl = value('an http or https URL without credentials or fragment', (text) => {
  if (!URL.canParse(text) || /[#\s]/.test(text)) return undefined
  const { protocol, username, password } = new URL(text)
  return /^https?:$/.test(protocol) && username === '' && password === '' ? text : undefined
})

const headerText = value('ASCII without control characters', (text) =>
  /^[\t\x20-\x7e]*$/.test(text) ? text : undefined,
)

const programText = z
  .string({ error: orMissing('must be a string; put it in quotes') })
  .refine((text) => !text.includes('\0'), 'must not contain the character U+0000')

const McpHttp = mappingOf({
  kind: z.literal('http'),
  url: mcpUrl,
  headers: recordOf(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'is not a valid header name', headerText).default({}),
})

const McpStdio = mappingOf({
  kind: z.literal('stdio'),
  command: programText.min(1, 'must not be empty'),
  args: z.array(programText, { error: 'must be a list of strings' }).default([]),
  env: recordOf(/^[A-Za-z_]\w*$/, 'is not a valid variable name', programText).default({}),
  cwd: programText.min(1, 'must not be empty').optional(),
})

/** The key `url` or `command` determines the kind of server. */
const McpServer = z.preprocess(
  (given, context) => {
    if (!isJsonObject(given)) return given
    const hasUrl = 'url' in given
    if (hasUrl === 'command' in given) context.addIssue('must have either url or command, not both')
    return { ...given, kind: hasUrl ? 'http' : 'stdio' }
  },
  z.discriminatedUnion('kind', [McpHttp, McpStdio], { error: orMissing('must be a mapping') }),
)

const operatorEvents = [
  ...['*', 'budget.*', 'price.*', 'budget.threshold_reached', 'budget.exhausted'],
  ...['budget.bound_violated', 'price.missing'],
] as const

const OperatorWebhook = mappingOf({
  url: mcpUrl,
  // The format of Standard Webhooks, with 24 to 64 bytes.
  secret: value(
    'a secret such as whsec_…; `openssl rand -base64 32` generates the part after whsec_',
    (text) => (/^whsec_[A-Za-z0-9+/]{32,86}={0,2}$/.test(text) ? text : undefined),
  ),
  events: z
    .array(z.enum(operatorEvents, { error: `must be one of ${operatorEvents.join(', ')}` }), {
      error: orMissing('must be a list of events'),
    })
    .min(1, 'must contain at least one event'),
})

const ConfigFileSchema = mappingOf({
  providers: z.record(z.string(), Provider, { error: 'must be a mapping of names to providers' }).default({}),
  prices: z
    .record(z.string(), PriceEntries, { error: 'must be a mapping of models to lists of prices' })
    .default({}),
  mcp: z.record(z.string(), McpServer, { error: 'must be a mapping of names to MCP servers' }).default({}),
  webhooks: z
    .array(OperatorWebhook, { error: 'must be a list of webhooks' })
    .max(10, 'must contain at most 10 webhooks')
    .superRefine((list, context) => {
      for (const [index, { url }] of list.entries())
        if (list.findIndex((other) => other.url === url) < index)
          context.addIssue({ code: 'custom', path: [index, 'url'], message: 'is used by another webhook' })
    })
    .default([]),
})

/** Resolves model paths relative to `folder`, which contains the configuration file. */
function toProvider(name: string, provider: z.infer<typeof Provider>, folder: string): ProviderConfig {
  if (provider.kind === 'mock') return { kind: 'mock', name }
  if (provider.kind === 'gateway') {
    const { url, api_key: apiKey, vendor, unknown_outcome: unknownOutcome, metering } = provider
    return { kind: 'gateway', name, url, apiKey, vendor, unknownOutcome, metering }
  }
  const { url = LOCAL_URL, model, threads, context } = provider
  if (model === undefined) return { kind: 'local', name, url }
  return { kind: 'local-model', name, path: resolve(folder, model), threads, contextTokens: context }
}

/** Passes the service's `PATH` to the program unless `env` sets a different one. */
function toMcpServer(name: string, server: z.infer<typeof McpServer>, searchPath = ''): McpServerConfig {
  if (server.kind === 'http') return { ...server, name }
  return { ...server, name, env: { PATH: searchPath, ...server.env }, cwd: server.cwd }
}
