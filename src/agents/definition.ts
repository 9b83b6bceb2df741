/** What an agent definition is: its rules, how its text is read, and how it is rendered as Markdown. */
import { z } from 'zod'
import { ServiceError } from '../lib/errors.ts'
import { isJsonObject, type Path } from '../lib/formats/json.ts'
import {
  findSchemaFault,
  findSizeProblem,
  type JsonSchema,
  orMissing,
  Text,
} from '../lib/formats/json-schema.ts'
import { offsetOf, readYaml, reject } from '../lib/formats/yaml.ts'
import { pageToolPrefix, type ServerTool, ToolName } from '../tools/tools.ts'
import { cutEntry, joinFrontMatter, splitFrontMatter } from './front-matter.ts'

const longestLabel = 200

export const FilledText = Text.refine((text) => text.trim() !== '', 'must not be blank')

/** What may stand in a heading or a menu. Security: 2.5 (names). */
export const Label = FilledText.refine(
  (text) => !/\p{Cc}/u.test(text),
  'must not contain control characters',
).refine(
  (text) => text.length <= longestLabel || [...text].length <= longestLabel,
  `must be at most ${longestLabel} characters`,
)

export function listOf<Item extends z.ZodType>(item: Item): z.ZodArray<Item> {
  return z.array(item, { error: orMissing('must be a list') })
}

/** A mapping in which a null is as good as leaving its key out. */
export function mappingOf<Fields extends z.ZodObject>(fields: Fields) {
  return z.preprocess((value) => withoutNulls(value, Object.keys(fields.shape)), fields)
}

/** A record without those of its keys that hold null; anything else as it is. */
export function withoutNulls(value: unknown, keys: readonly string[]): unknown {
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).filter(([key, held]) => held !== null || !keys.includes(key)),
  )
}

const largestTextBytes = 256 * 1024

const mostTools = 128

const mostOrigins = 100

/** How a definition is written: YAML, or Markdown with the configuration as front matter. Decision: 6. */
export type DefinitionFormat = 'yaml' | 'markdown'

/** A server-side tool, as it was written: its name alone, or with its description, its schema and what else it has. */
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
  { error: 'must be the name of a tool, or a mapping with its name' },
)

export type AgentTool = z.infer<typeof AgentTool>

const Tools = listOf(AgentTool)
  .max(mostTools, `must be at most ${mostTools} tools`)
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
    `must be the page's own name, without ${pageToolPrefix}`,
  ),
)

/** Which tools of the page the agent accepts, by the page's own names for them. Contract: Agent, `pageTools`. */
export const PageTools = z.preprocess(
  (value, ctx) => {
    const given = withoutNulls(value, ['restricted', 'blocked'])
    const hasBoth = isJsonObject(given) && 'restricted' in given && 'blocked' in given
    if (hasBoth) ctx.addIssue({ code: 'custom', message: 'must have only one of restricted and blocked' })
    return given
  },
  z.union([z.literal('all'), z.object({ restricted: PageToolNames }), z.object({ blocked: PageToolNames })], {
    error: 'must be all, or a mapping with either restricted or blocked',
  }),
)

export type PageTools = z.infer<typeof PageTools>

/** How the agent speaks. Contract: Agent, `behavior`. */
export const AgentBehavior = mappingOf(
  z.object(
    { tone: Text.optional(), language: Text.optional(), rules: listOf(Text).optional() },
    { error: 'must be a mapping' },
  ),
)

export type AgentBehavior = z.infer<typeof AgentBehavior>

/** An origin as `frame-ancestors` takes it: nothing that could end the directive, `*.` for every host below. */
const FrameOrigin = Text.regex(
  /^https?:\/\/(?:\*\.)?[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*(?::\d{1,5})?$/i,
  'must be an origin: http:// or https://, a host and perhaps a port, without a path',
)

/** How the widget shows the agent. Decision: 6. */
export const AgentEmbed = mappingOf(
  z.object(
    {
      origins: listOf(FrameOrigin).max(mostOrigins, `must be at most ${mostOrigins} origins`).optional(),
      greeting: FilledText.optional(),
      title: Label.optional(),
      starters: listOf(FilledText).optional(),
    },
    { error: 'must be a mapping' },
  ),
)

export type AgentEmbed = z.infer<typeof AgentEmbed>

/** What an agent is. Keys it does not name stay in the text and mean nothing. Contract: Agent; Decision: 6. */
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
  }),
)

export type AgentDefinition = z.infer<typeof AgentDefinition>

/**
 * Reads the text of an agent definition, at most 256 KiB.
 * Contract: Errors, 400; Decision: 6.
 * @throws ServiceError `too_large`; `invalid_value` for everything else, naming path, line and column.
 */
export function parseDefinition(source: string, format: DefinitionFormat): AgentDefinition {
  assertStorable(source)
  const text = withoutByteOrderMark(source)
  const frontMatter = format === 'markdown' ? splitFrontMatter(text) : undefined
  const mapping = readYaml(frontMatter?.configuration ?? text)
  if (frontMatter !== undefined && 'instructions' in mapping.value) {
    const problem = 'belongs after the front matter, not into it'
    reject(text, offsetOf(mapping, ['instructions']), ['instructions'], problem)
  }
  const refuseAt = (path: Path, problem: string): never => {
    const isBody = frontMatter !== undefined && path[0] === 'instructions'
    return reject(text, isBody ? frontMatter.instructionsStart : offsetOf(mapping, path), path, problem)
  }
  const value = { ...mapping.value, ...(frontMatter && { instructions: frontMatter.instructions }) }
  const result = AgentDefinition.safeParse(value, { reportInput: true })
  if (!result.success) {
    const [fault] = result.error.issues.map(mostSpecific)
    return refuseAt(fault?.path ?? [], fault?.message ?? 'must be an agent definition')
  }
  assertToolSchemas(result.data.tools, refuseAt)
  return result.data
}

/**
 * Renders a valid definition as Markdown: front matter, then the instructions. Reading that gives the same definition.
 * Contract: Agent, `markdown`; Decision: 6.
 */
export function renderMarkdown(text: string, format: DefinitionFormat): string {
  if (format === 'markdown') return text
  const mapping = readYaml(withoutByteOrderMark(text))
  return joinFrontMatter(cutEntry(mapping, 'instructions'), String(mapping.value.instructions))
}

/** The name of a tool, however it was written. */
export function toolName(tool: AgentTool): string {
  return typeof tool === 'string' ? tool : tool.name
}

/** Some editors begin a file with the mark; it is no part of the definition. */
function withoutByteOrderMark(text: string): string {
  return text.startsWith('\uFEFF') ? text.slice(1) : text
}

/** @throws ServiceError `too_large`; `invalid_value` for what no store can hold. */
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
  refuseAt: (path: Path, problem: string) => never,
): void {
  const schemas = tools.map((tool) => (typeof tool === 'string' ? undefined : tool.inputSchema))
  const tooMuch = findSizeProblem(schemas.filter((schema) => schema !== undefined))
  if (tooMuch !== undefined) refuseAt(['tools'], tooMuch)
  for (const [index, schema] of schemas.entries()) {
    const fault = schema === undefined ? undefined : findSchemaFault(schema)
    if (fault !== undefined) refuseAt(['tools', index, 'inputSchema', ...fault.path], fault.problem)
  }
}

type Issue = z.core.$ZodIssue

/** Of a value that fits no branch of a union, the fault in the branch it was meant for. */
function mostSpecific(issue: Issue): Issue {
  if (issue.code !== 'invalid_union') return issue
  const inner = issue.errors.flatMap((branch) => branch.slice(0, 1).map(mostSpecific))
  const deeper = inner.filter(({ path }) => path.length > 0)
  const meant =
    deeper.find(({ input }) => input !== undefined) ?? (deeper.length === 1 ? deeper[0] : undefined)
  return meant === undefined ? issue : { ...meant, path: [...issue.path, ...meant.path] }
}

/** A tool, as far as it is known here; a caller may know more of one that nobody here runs. */
export interface DescribedTool {
  readonly name: string
  readonly description: string | undefined
  readonly inputSchema: JsonSchema | undefined
}

/** The agent's definition wins, field by field. Decision: 7 (An agent turn). */
export function describeTool(tool: AgentTool, known: ServerTool | undefined): DescribedTool {
  const { description, inputSchema } = typeof tool === 'string' ? {} : tool
  return {
    name: toolName(tool),
    description: description ?? known?.description,
    inputSchema: inputSchema ?? known?.inputSchema,
  }
}
