/** Reads, validates and calls the host program's tools. */
import { z } from 'zod'
import { StartupError } from '../lib/errors.ts'
import { isJsonObject, type Path, renderPath } from '../lib/formats/json.ts'
import { findSchemaFault, type JsonSchema, Text } from '../lib/formats/json-schema.ts'
import { compileSchema } from './arguments.ts'
import { toAnswer } from './run.ts'
import { type ServerTool, type ToolCallContext, ToolName } from './tools.ts'

export interface HostTool {
  readonly description?: string
  /**
   * JSON Schema whose type is `object` (2020-12, or draft-07 with `$schema`). The handler receives only
   * arguments that match it.
   */
  readonly inputSchema?: Readonly<Record<string, unknown>>
  /**
   * Returns text, JSON or nothing. To report a failure to the model, return text; thrown errors are only
   * logged.
   */
  handler(args: Readonly<Record<string, unknown>>, context: ToolCallContext): unknown
}

export type HostTools = Readonly<Record<string, HostTool>> | readonly (HostTool & { readonly name: string })[]

const Tool = z.object(
  {
    description: Text.optional(),
    inputSchema: z.record(z.string(), z.unknown(), { error: 'must be a JSON Schema object' }).optional(),
    handler: z.custom((value) => typeof value === 'function', 'must be a function'),
  },
  { error: 'must be an object with a handler' },
)

interface GivenTool {
  readonly name: unknown
  readonly tool: unknown
  readonly path: Path
  readonly namePath: Path
}

export function listGiven(tools: unknown, source: string): GivenTool[] {
  if (tools === undefined) return []
  if (Array.isArray(tools)) {
    return tools.map((tool, index) => {
      const path = ['tools', index]
      return { name: tool?.name, tool, path, namePath: [...path, 'name'] }
    })
  }
  if (!isJsonObject(tools))
    rejectTool(source, ['tools'], 'must be a list of tools, or an object with tools by name')
  return Object.entries(tools).map(([name, tool]) => {
    const path = ['tools', name]
    return { name, tool, path, namePath: path }
  })
}

export function readTool({ name: givenName, tool, path, namePath }: GivenTool, source: string): ServerTool {
  const parsed = Tool.safeParse(tool)
  if (!parsed.success) rejectIssue(source, path, parsed.error)
  const named = ToolName.safeParse(givenName)
  if (!named.success) rejectIssue(source, namePath, named.error)
  const { description, inputSchema } = parsed.data
  if (inputSchema !== undefined) assertSchema(inputSchema, source, [...path, 'inputSchema'])
  const name = named.data
  // Calls the handler on its original object, because the tool may be an instance of a class.
  const host = tool as HostTool
  return {
    name,
    description,
    inputSchema,
    origin: 'host',
    run: async (args, context) => toAnswer(name, await host.handler(args, context)),
  }
}

function assertSchema(schema: JsonSchema, source: string, path: Path): void {
  const fault = findSchemaFault(schema)
  if (fault !== undefined) rejectTool(source, [...path, ...fault.path], fault.problem)
  try {
    compileSchema(schema)
  } catch (error) {
    rejectTool(source, path, `is not usable: ${(error as Error).message}`)
  }
}

function rejectIssue(source: string, path: Path, { issues: [issue] }: z.ZodError): never {
  rejectTool(source, [...path, ...(issue?.path ?? [])], issue?.message ?? 'is invalid')
}

export function rejectTool(source: string, path: Path, problem: string): never {
  throw new StartupError(`${source}: ${renderPath(path)} ${problem}.`)
}
