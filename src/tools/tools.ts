/** Combines the tools that run on the server, from the host program and from MCP servers. */
import { type JsonSchema, Text } from '../lib/formats/json-schema.ts'
import type { CallVisitor } from '../operations/operation.ts'

/** The visitor on whose behalf a tool runs. */
export interface ToolVisitor {
  /** `vis_` and 24 characters. */
  readonly id: string
  /**
   * True if a signed identity or a request with a parent key asserts the subject; false for anonymous
   * visitors.
   */
  readonly verified: boolean
  /** The visitor's id in the agent owner's system; for anonymous visitors, the same as `id`. */
  readonly subject: string
  /** The claims that the agent's definition lists. */
  readonly claims: Readonly<Record<string, unknown>>
}

export interface ToolCallContext {
  /** Aborts when the client disconnects or the tool times out. */
  readonly signal: AbortSignal
  readonly agentId: string
  readonly tenantId: string
  readonly requestId: string
  /** Null for a call without a visitor. Never sent to a model. */
  readonly visitor: ToolVisitor | null
}

export type ToolAnswer =
  | { readonly text: string }
  | {
      readonly problem: string
      /** Whether the tool's server did not respond, so the tool itself may not have run. */
      readonly isUnavailable?: true
    }

export interface ServerTool {
  readonly name: string
  readonly description: string | undefined
  readonly inputSchema: JsonSchema | undefined
  readonly origin: 'host' | 'mcp'
  /**
   * Receives only arguments that match the schema. Errors that it throws are logged and hidden from the
   * model.
   */
  run(args: Readonly<Record<string, unknown>>, context: ToolCallContext): Promise<ToolAnswer>
}

export interface Toolbox {
  find(name: string): ServerTool | undefined
  /** Returns all tools. The array is the same until a tool is added, removed or changed. */
  list(): readonly ServerTool[]
  health(): Readonly<Record<string, 'up' | 'down'>>
  close(): Promise<void>
}

/**
 * Combines the host's tools with another toolbox's; if two have the same name, the host's tool takes
 * precedence.
 */
export function createToolbox(hostTools: readonly ServerTool[], others: Toolbox = noTools): Toolbox {
  const byName = new Map(hostTools.map((tool) => [tool.name, tool]))
  let [known, all] = join(others.list())

  function join(listed: readonly ServerTool[]): [readonly ServerTool[], readonly ServerTool[]] {
    return [listed, [...hostTools, ...listed.filter(({ name }) => !byName.has(name))]]
  }

  return {
    find: (name) => byName.get(name) ?? others.find(name),
    list() {
      const listed = others.list()
      if (listed !== known) [known, all] = join(listed)
      return all
    },
    health: () => others.health(),
    close: () => others.close(),
  }
}

const noList: readonly ServerTool[] = []

const noTools: Toolbox = {
  find: () => undefined,
  list: () => noList,
  health: () => ({}),
  close: async () => {},
}

export const pageToolPrefix = 'postMessage_'

/** The tool that a model uses to ask for a person; the server adds it to agents with `handover.tool`. */
export const REQUEST_PERSON = 'request_person'

export const ToolName = Text.regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, _ or -').refine(
  (name) => !name.startsWith(pageToolPrefix),
  `must not start with ${pageToolPrefix}, which is reserved for the tools of a page`,
)

/** Returns the part of a visitor that tools receive. */
export function toToolVisitor(visitor: CallVisitor | undefined): ToolVisitor | null {
  if (visitor === undefined) return null
  const { id, kind, subject, claims } = visitor
  return { id, verified: kind !== 'anonymous', subject, claims }
}
