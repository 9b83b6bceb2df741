/** The `mcp` section of the configuration file: servers whose tools agents may use. */
import { z } from 'zod'
import type { McpServerConfig } from './config.ts'
import type { Fault, Variables } from './references.ts'
import {
  findNameProblem,
  headerText,
  isMapping,
  mappingOf,
  mcpUrl,
  orMissing,
  programText,
} from './values.ts'

const headerName = { pattern: /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, rule: 'is not the name of a header' }

const variableName = { pattern: /^[A-Za-z_]\w*$/, rule: 'is not the name of a variable' }

const Http = mappingOf({
  kind: z.literal('http'),
  url: mcpUrl(),
  headers: recordOf(headerName, headerText()).default({}),
})

const Stdio = mappingOf({
  kind: z.literal('stdio'),
  command: programText().min(1, 'must not be empty'),
  args: z.array(programText(), { error: 'must be a list of texts' }).default([]),
  env: recordOf(variableName, programText()).default({}),
  cwd: programText().min(1, 'must not be empty').optional(),
})

/** One server; what it is reached by says which kind it is. */
const McpServer = z.preprocess(
  (value, context) => {
    if (!isMapping(value)) return value
    const hasUrl = 'url' in value
    if (hasUrl === 'command' in value) context.addIssue('must have a url, or else a command')
    return { ...value, kind: hasUrl ? 'http' : 'stdio' }
  },
  z.discriminatedUnion('kind', [Http, Stdio], { error: orMissing('must be a mapping') }),
)

export const McpSection = z.record(z.string(), McpServer, {
  error: 'must be a mapping of names to MCP servers',
})

export type McpSection = z.infer<typeof McpSection>

/** The servers in the order of the file; programs find others by the service's own search path. */
export function listMcpServers(section: McpSection, variables: Variables): McpServerConfig[] {
  return Object.entries(section).map(([name, server]) =>
    server.kind === 'http'
      ? { ...server, name }
      : { ...server, name, env: { PATH: variables.PATH ?? '', ...server.env }, cwd: server.cwd },
  )
}

/** Tools are called `<server>__<tool>`, which must be read in one way only. */
export function listWrongMcpNames(section: unknown): Fault[] {
  if (!isMapping(section)) return []
  return Object.keys(section).flatMap((name) => {
    const problem = findNameProblem(name) ?? (name.includes('__') ? 'a name must not contain __' : undefined)
    return problem === undefined ? [] : [{ path: ['mcp', name], problem }]
  })
}

/** Texts under names of one kind. */
function recordOf(name: { pattern: RegExp; rule: string }, text: z.ZodType<string>) {
  return z
    .record(z.string(), text, { error: 'must be a mapping of names to texts' })
    .superRefine((record, context) => {
      for (const key of Object.keys(record).filter((key) => !name.pattern.test(key))) {
        context.addIssue({ code: 'custom', path: [key], message: name.rule })
      }
    })
}
