/** Parses and validates agent definitions in YAML and Markdown, and converts YAML to Markdown. */
import { isScalar, type Pair, type ParsedNode } from 'yaml'
import { z } from 'zod'
import { ServiceError } from '../lib/errors.ts'
import { isJsonObject, type Path } from '../lib/formats/json.ts'
import { findSchemaFault, findSizeProblem, type JsonSchema, Text } from '../lib/formats/json-schema.ts'
import { listOf, mappingOf, withoutNulls } from '../lib/formats/mapping-schema.ts'
import { offsetOf, readYaml, reject, type YamlMapping } from '../lib/formats/yaml.ts'
import { pageToolPrefix, REQUEST_PERSON, type ServerTool, ToolName } from '../tools/tools.ts'
import { AgentAttachments, AgentConversations, Disclaimer, ImageHosts } from './definition-parts.ts'
import { AgentTheme } from './theme.ts'
import { AgentVisitors } from './visitor-rules.ts'

const longestLabel = 200

const FilledText = Text.refine((text) => text.trim() !== '', 'must not be blank')

const Label = FilledText.refine(
  (text) => !/\p{Cc}/u.test(text),
  'must not contain control characters',
).refine(
  (text) => text.length <= longestLabel || [...text].length <= longestLabel,
  `must be at most ${longestLabel} characters`,
)

const largestTextBytes = 256 * 1024
const mostTools = 128
const mostOrigins = 100

export type DefinitionFormat = 'yaml' | 'markdown'

export const AgentTool = z.union(
  [
    ToolName,
    mappingOf(
      z.looseObject(
        {
          name: ToolName,
          description: Text.optional(),
          inputSchema: z.record(z.string(), z.unknown(), { error: 'must be a mapping' }).optional(),
        },
        { error: 'must be a mapping' },
      ),
    ),
  ],
  { error: 'must be a tool name, or a mapping with a name' },
)

export type AgentTool = z.infer<typeof AgentTool>

const Tools = listOf(AgentTool)
  .max(mostTools, `must have at most ${mostTools} tools`)
  .superRefine((tools, ctx) => {
    const seen = new Map<string, number>()
    for (const [index, tool] of tools.entries()) {
      const name = toolName(tool)
      const path = typeof tool === 'string' ? [index] : [index, 'name']
      if (seen.has(name)) ctx.addIssue({ code: 'custom', path, message: `repeats tools[${seen.get(name)}]` })
      else seen.set(name, index)
    }
  })

const PageToolNames = listOf(
  Label.refine(
    (name) => !name.startsWith(pageToolPrefix),
    `must be the tool name that the page uses, without ${pageToolPrefix}`,
  ),
)

/** Selects the page tools that the agent may use, by the names that the page uses for them. */
export const PageTools = z.preprocess(
  (value, ctx) => {
    const given = withoutNulls(value, ['restricted', 'blocked'])
    const hasBoth = isJsonObject(given) && 'restricted' in given && 'blocked' in given
    if (hasBoth) ctx.addIssue({ code: 'custom', message: 'must not have both restricted and blocked' })
    return given
  },
  z.union([z.literal('all'), z.object({ restricted: PageToolNames }), z.object({ blocked: PageToolNames })], {
    error: 'must be `all`, or a mapping with `restricted` or `blocked`',
  }),
)

export type PageTools = z.infer<typeof PageTools>

export const AgentBehavior = mappingOf(
  z.object(
    { tone: Text.optional(), language: Text.optional(), rules: listOf(Text).optional() },
    { error: 'must be a mapping' },
  ),
)

/** An origin for a `frame-ancestors` directive. Allows only characters that cannot end the directive. */
const FrameOrigin = Text.regex(
  /^https?:\/\/(?:\*\.)?[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*(?::\d{1,5})?$/i,
  'must be an origin: http:// or https://, a host and an optional port, without a path',
)

const AgentEmbed = mappingOf(
  z.object(
    {
      origins: listOf(FrameOrigin).max(mostOrigins, `must have at most ${mostOrigins} origins`).optional(),
      greeting: FilledText.optional(),
      title: Label.optional(),
      starters: listOf(FilledText).optional(),
      theme: AgentTheme.optional(),
      disclaimer: Disclaimer.optional(),
      dictation: z.boolean({ error: 'must be true or false' }).optional(),
      readAloud: z.boolean({ error: 'must be true or false' }).optional(),
      followUps: z.boolean({ error: 'must be true or false' }).optional(),
      imageHosts: ImageHosts.optional(),
    },
    { error: 'must be a mapping' },
  ),
)

/**
 * Ignores unknown keys, except under `attachments`, `conversations`, `embed.theme`, `embed.disclaimer` and
 * `visitors`, where it rejects them. The stored text still contains ignored keys.
 */
export const AgentDefinition = mappingOf(
  z.object({
    name: Label,
    instructions: FilledText,
    model: Label.optional(),
    temperature: z
      .number({ error: 'must be a number' })
      .min(0, 'must be between 0 and 2')
      .max(2, 'must be between 0 and 2')
      .default(0.7),
    tools: Tools.default([]),
    pageTools: PageTools.default('all'),
    behavior: AgentBehavior.optional(),
    embed: AgentEmbed.optional(),
    attachments: AgentAttachments.optional(),
    conversations: AgentConversations.optional(),
    visitors: AgentVisitors.optional(),
  }),
)

export type AgentDefinition = z.infer<typeof AgentDefinition>

/**
 * Parses and validates a definition.
 * @throws ServiceError `too_large` above 256 KiB; otherwise `invalid_value` with path, line and column.
 */
export function parseDefinition(source: string, format: DefinitionFormat): AgentDefinition {
  assertStorable(source)
  const text = withoutByteOrderMark(source)
  const frontMatter = format === 'markdown' ? splitFrontMatter(text) : undefined
  const mapping = readYaml(frontMatter?.configuration ?? text)
  if (frontMatter !== undefined && 'instructions' in mapping.value) {
    const problem = 'must come after the front matter, not inside it'
    reject(text, offsetOf(mapping, ['instructions']), ['instructions'], problem)
  }
  const rejectAt = (path: Path, problem: string): never => {
    const isBody = frontMatter !== undefined && path[0] === 'instructions'
    return reject(text, isBody ? frontMatter.instructionsStart : offsetOf(mapping, path), path, problem)
  }
  const value = { ...mapping.value, ...(frontMatter && { instructions: frontMatter.instructions }) }
  const result = AgentDefinition.safeParse(value, { reportInput: true })
  if (!result.success) {
    const [fault] = result.error.issues.map(mostSpecific)
    return rejectAt(fault?.path ?? [], fault?.message ?? 'must be an agent definition')
  }
  assertToolSchemas(result.data.tools, rejectAt)
  assertNoReservedTool(result.data, rejectAt)
  return result.data
}

/**
 * Renders a valid definition as Markdown: front matter followed by the instructions. Parsing the result
 * returns the same definition.
 */
export function renderMarkdown(text: string, format: DefinitionFormat): string {
  if (format === 'markdown') return text
  const mapping = readYaml(withoutByteOrderMark(text))
  return `---\n${cutEntry(mapping, 'instructions')}---\n\n${mapping.value.instructions}`
}

export function toolName(tool: AgentTool): string {
  return typeof tool === 'string' ? tool : tool.name
}

function withoutByteOrderMark(text: string): string {
  return text.startsWith('\uFEFF') ? text.slice(1) : text
}

/**
 * @throws ServiceError `too_large`; `invalid_value` if the text contains characters that databases cannot
 * store.
 */
function assertStorable(text: string): void {
  if (Buffer.byteLength(text) > largestTextBytes) {
    throw new ServiceError('too_large', 'The agent definition is larger than 256 KiB.')
  }
  const loneSurrogate = text.search(/\p{Surrogate}/u)
  if (loneSurrogate !== -1) reject(text, loneSurrogate, [], 'must be well-formed Unicode')
  const nul = text.indexOf('\0')
  if (nul !== -1) reject(text, nul, [], 'must not contain the character U+0000')
}

function assertToolSchemas(
  tools: readonly AgentTool[],
  rejectAt: (path: Path, problem: string) => never,
): void {
  const schemas = tools.map((tool) => (typeof tool === 'string' ? undefined : tool.inputSchema))
  const tooMuch = findSizeProblem(schemas.filter((schema) => schema !== undefined))
  if (tooMuch !== undefined) rejectAt(['tools'], tooMuch)
  for (const [index, schema] of schemas.entries()) {
    const fault = schema === undefined ? undefined : findSchemaFault(schema)
    if (fault !== undefined) rejectAt(['tools', index, 'inputSchema', ...fault.path], fault.problem)
  }
}

/**
 * With `handover.tool`, the server adds its own `request_person`, so a tool with this name would never be
 * called.
 */
function assertNoReservedTool(
  { tools, conversations }: AgentDefinition,
  rejectAt: (path: Path, problem: string) => never,
): void {
  const index = tools.findIndex((tool) => toolName(tool) === REQUEST_PERSON)
  if (index === -1 || !conversations?.handover?.tool) return
  const path = typeof tools[index] === 'string' ? [] : ['name']
  const problem = `must not be ${REQUEST_PERSON}, because \`conversations.handover.tool\` adds this tool`
  rejectAt(['tools', index, ...path], problem)
}

type Issue = z.core.$ZodIssue

/** Returns the issue of the union branch that the author most likely meant. */
function mostSpecific(issue: Issue): Issue {
  if (issue.code !== 'invalid_union') return issue
  const inner = issue.errors.flatMap((branch) => branch.slice(0, 1).map(mostSpecific))
  const deeper = inner.filter(({ path }) => path.length > 0)
  const meant =
    deeper.find(({ input }) => input !== undefined) ?? (deeper.length === 1 ? deeper[0] : undefined)
  return meant === undefined ? issue : { ...meant, path: [...issue.path, ...meant.path] }
}

/**
 * A tool's name, description and schema, as far as the server knows them. A client that runs the tool may
 * know more.
 */
export interface DescribedTool {
  readonly name: string
  readonly description: string | undefined
  readonly inputSchema: JsonSchema | undefined
}

/**
 * Returns a tool's description and schema from the agent's definition if it has them, otherwise from the
 * server's tool.
 */
export function describeTool(tool: AgentTool, known: ServerTool | undefined): DescribedTool {
  const { description, inputSchema } = typeof tool === 'string' ? {} : tool
  return {
    name: toolName(tool),
    description: description ?? known?.description,
    inputSchema: inputSchema ?? known?.inputSchema,
  }
}

const position = z.int().min(1).nullable()

export const DefinitionCheck = z
  .strictObject({
    problem: z
      .strictObject({
        message: z.string(),
        path: z.string().nullable().meta({
          description:
            'Path of the field with the error, such as `tools[0].name`; null if the error concerns the whole text.',
        }),
        line: position,
        column: position,
      })
      .nullable()
      .meta({ description: 'The first error; null if the text is a valid agent definition.' }),
  })
  .meta({ id: 'DefinitionCheck' })
export type DefinitionCheck = z.output<typeof DefinitionCheck>

export function checkDefinition(yaml: string, format: DefinitionFormat): DefinitionCheck {
  try {
    parseDefinition(yaml, format)
    return { problem: null }
  } catch (thrown) {
    if (!(thrown instanceof ServiceError)) throw thrown
    const { param = null, position } = thrown.details
    const { line = null, column = null } = position ?? {}
    return { problem: { message: thrown.message, path: param, line, column } }
  }
}

export const definitionSchema: Readonly<Record<string, unknown>> = z.toJSONSchema(AgentDefinition, {
  io: 'input',
  unrepresentable: 'any',
})

/**
 * Splits Markdown into front matter and instructions, which an empty line must separate.
 * @throws ServiceError `invalid_value` with line and column.
 */
function splitFrontMatter(text: string) {
  const opening = /^---\r?\n/.exec(text)
  if (opening === null)
    reject(
      text,
      0,
      [],
      'must start with front matter: a line with ---, the configuration, and another line with ---',
    )
  // Starts at the line break after the opening line, because the front matter may be empty.
  const search = /\n---(\r?\n|$)/g
  search.lastIndex = opening[0].length - 1
  const closing = search.exec(text)
  if (closing === null)
    reject(text, text.length, [], 'the front matter must end with a line that contains only ---')
  const emptyLine = /^\r?\n/.exec(text.slice(search.lastIndex, search.lastIndex + 2))
  if (emptyLine === null) {
    reject(
      text,
      search.lastIndex,
      [],
      'the line --- at the end of the front matter must be followed by an empty line',
    )
  }
  const instructionsStart = search.lastIndex + emptyLine[0].length
  return {
    // Includes the opening line, which YAML reads as a document marker, so that offsets remain valid.
    configuration: text.slice(0, closing.index + 1),
    instructions: text.slice(instructionsStart),
    instructionsStart,
  }
}

function cutEntry(mapping: YamlMapping, key: string): string {
  const { text, root, bodyStart, bodyEnd } = mapping
  const index = root.items.findIndex((entry) => isScalar(entry.key) && entry.key.value === key)
  const [before, entry, after] = [root.items[index - 1], root.items[index], root.items[index + 1]]
  if (entry === undefined) return text.slice(bodyStart, bodyEnd)
  const cut = root.flow ? flowCut(entry, before, after) : blockCut(mapping, entry, after)
  return text.slice(bodyStart, cut.start) + cut.kept + text.slice(cut.end, bodyEnd)
}

type Entry = Pair<ParsedNode, ParsedNode | null>

interface Cut {
  readonly start: number
  readonly end: number
  /** The text that replaces the range from `start` to `end`. */
  readonly kept: string
}

/**
 * Removes an entry from a flow mapping together with the comma before it or, for the first entry, after it.
 */
function flowCut(entry: Entry, before: Entry | undefined, after: Entry | undefined): Cut {
  const end = valueEndOf(entry)
  if (before !== undefined) return { start: valueEndOf(before), end, kept: '' }
  return { start: entry.key.range[0], end: after?.key.range[0] ?? end, kept: '' }
}

function valueEndOf({ key, value }: Entry): number {
  return (value ?? key).range[1]
}

/**
 * Removes an entry from a block mapping. Preserves the comments after its value that are indented at most as
 * far as its key; more deeply indented comments could become part of a preceding block scalar.
 */
function blockCut({ text, bodyStart, bodyEnd }: YamlMapping, entry: Entry, after: Entry | undefined): Cut {
  const start = Math.max(lineStartOf(text, entry), bodyStart)
  const end = after === undefined ? bodyEnd : lineStartOf(text, after)
  const valueEnd = (entry.value ?? entry.key).range[2]
  const indent = keyStartOf(entry) - start
  const comments = text.slice(valueEnd, end).match(new RegExp(`(?<![^\\n]) {0,${indent}}#[^\\n]*\\n`, 'g'))
  return { start, end, kept: comments?.join('') ?? '' }
}

function lineStartOf(text: string, entry: Entry): number {
  return text.lastIndexOf('\n', keyStartOf(entry) - 1) + 1
}

function keyStartOf({ key, srcToken }: Entry): number {
  return srcToken?.start.find((token) => token.type === 'explicit-key-ind')?.offset ?? key.range[0]
}
