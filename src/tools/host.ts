/** What a host brings along: its tools, and what it does when an upload is complete. */
import { z } from 'zod'
import { ToolName } from '../agents/definition.ts'
import { isRecord, Text } from '../agents/fields.ts'
import { type Path, renderPath } from '../agents/refusal.ts'
import type { JsonSchema } from '../agents/schema-places.ts'
import { findSchemaFault } from '../agents/tool-schema.ts'
import type { CompletedUpload, UploadHooks } from '../artifacts/completed-upload.ts'
import { StartupError } from '../startup-error.ts'
import { compileSchema } from './arguments.ts'
import { toAnswer } from './result.ts'
import type { ServerTool, ToolCallContext } from './tool.ts'

/** A tool of the host. */
export interface HostTool {
  readonly description?: string
  /** JSON Schema (2020-12, or draft-07 if `$schema` says so) of an object; arguments that do not fit never reach the handler. */
  readonly inputSchema?: Readonly<Record<string, unknown>>
  /**
   * Answers a call with text, any JSON value, or nothing. Text is also how to tell the model of a failure: what is thrown goes to the
   * log only.
   */
  handler(args: Readonly<Record<string, unknown>>, context: ToolCallContext): unknown
}

/** Tools by name, or as a list of tools with their names. */
export type HostTools = Readonly<Record<string, HostTool>> | readonly (HostTool & { readonly name: string })[]

/** Told of each complete upload, again and again until it returns, or its promise resolves; at least once. Decision: 9. */
export type OnUploadComplete = (artifact: CompletedUpload, hooks: UploadHooks) => unknown

/** What the module of `PARLEY_HOOKS` exports, and what `createService` takes beside the configuration. */
export interface HostHooks {
  readonly tools?: HostTools
  readonly onUploadComplete?: OnUploadComplete
}

/** The same, read. */
export interface ReadHooks {
  readonly tools: readonly ServerTool[]
  readonly onUploadComplete: OnUploadComplete | undefined
}

const Tool = z.object(
  {
    description: Text.optional(),
    inputSchema: z
      .record(z.string(), z.unknown(), { error: 'must be a JSON Schema, as an object' })
      .optional(),
    handler: z.custom((value) => typeof value === 'function', 'must be a function'),
  },
  { error: 'must be an object with a handler' },
)

/**
 * Reads what a host brings; `source` names it in errors.
 * @throws StartupError naming the export, or the tool in it, that cannot be used.
 */
export function readHooks({ tools, onUploadComplete }: HostHooks, source: string): ReadHooks {
  if (onUploadComplete !== undefined && typeof onUploadComplete !== 'function') {
    throw new StartupError(`${source}: onUploadComplete must be a function.`)
  }
  const read = new Map<string, ServerTool>()
  for (const given of listGiven(tools, source)) {
    const tool = readTool(given, source)
    if (read.has(tool.name)) refuse(source, given.namePath, `repeats '${tool.name}'`)
    read.set(tool.name, tool)
  }
  return { tools: [...read.values()], onUploadComplete }
}

/** Both together; where both have a tool of a name, or say what to do with uploads, the first wins. */
export function joinHooks(first: ReadHooks, second: ReadHooks): ReadHooks {
  const names = new Set(first.tools.map(({ name }) => name))
  return {
    tools: [...first.tools, ...second.tools.filter(({ name }) => !names.has(name))],
    onUploadComplete: first.onUploadComplete ?? second.onUploadComplete,
  }
}

/** A tool as it was brought, and where it and its name stand. */
interface GivenTool {
  readonly name: unknown
  readonly tool: unknown
  readonly path: Path
  readonly namePath: Path
}

function listGiven(tools: unknown, source: string): GivenTool[] {
  if (tools === undefined) return []
  if (Array.isArray(tools)) {
    return tools.map((tool, index) => {
      const path = ['tools', index]
      return { name: tool?.name, tool, path, namePath: [...path, 'name'] }
    })
  }
  if (!isRecord(tools)) refuse(source, ['tools'], 'must be an object of tools by name, or a list of them')
  return Object.entries(tools).map(([name, tool]) => {
    const path = ['tools', name]
    return { name, tool, path, namePath: path }
  })
}

function readTool({ name: givenName, tool, path, namePath }: GivenTool, source: string): ServerTool {
  const parsed = Tool.safeParse(tool)
  if (!parsed.success) refuseIssue(source, path, parsed.error)
  const named = ToolName.safeParse(givenName)
  if (!named.success) refuseIssue(source, namePath, named.error)
  const { description, inputSchema } = parsed.data
  if (inputSchema !== undefined) assertSchema(inputSchema, source, [...path, 'inputSchema'])
  const name = named.data
  // Called on the object it came in, which may be of a class of the host's own.
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
  if (fault !== undefined) refuse(source, [...path, ...fault.path], fault.problem)
  try {
    compileSchema(schema)
  } catch (error) {
    refuse(source, path, `cannot be used: ${(error as Error).message}`)
  }
}

function refuseIssue(source: string, path: Path, { issues: [issue] }: z.ZodError): never {
  refuse(source, [...path, ...(issue?.path ?? [])], issue?.message ?? 'cannot be used')
}

function refuse(source: string, path: Path, problem: string): never {
  throw new StartupError(`${source}: ${renderPath(path)} ${problem}.`)
}
