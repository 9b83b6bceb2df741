/** What a tool is that runs on the server, whoever brought it: the host's module, its options, or an MCP server. */
import { type JsonSchema, Text } from '../lib/formats/json-schema.ts'

/** Who calls a tool, and how long it is waited for. */
export interface ToolCallContext {
  /** Aborted when the caller leaves or the tool's time is up. */
  readonly signal: AbortSignal
  readonly agentId: string
  /** The public part of the parent key the agent belongs to. */
  readonly tenantId: string
  readonly requestId: string
}

/** What a tool answers: text for the model, or a sentence about what went wrong that the model may read. */
export type ToolAnswer = { readonly text: string } | { readonly problem: string }

/** A tool the service runs itself. */
export interface ServerTool {
  readonly name: string
  readonly description: string | undefined
  readonly inputSchema: JsonSchema | undefined
  /** Who wrote it, and its schema. */
  readonly origin: 'host' | 'mcp'
  /** Calls it with arguments that fit its schema. What it throws is logged, and not for the model to read. */
  run(args: Readonly<Record<string, unknown>>, context: ToolCallContext): Promise<ToolAnswer>
}

/** The tools of this server. */
export interface Toolbox {
  find(name: string): ServerTool | undefined
  /** All of them; the same array until one comes, goes or changes. */
  list(): readonly ServerTool[]
  /** Whether each MCP server is connected. */
  health(): Readonly<Record<string, 'up' | 'down'>>
  /** Lets go of MCP servers. */
  close(): Promise<void>
}

/** A toolbox of the host's tools and another's; the host's win. Decision: 7 (Tools). */
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

/** What a tool of this server may be called. */
export const ToolName = Text.regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, _ or -').refine(
  (name) => !name.startsWith(pageToolPrefix),
  `must not start with ${pageToolPrefix}, which marks the tools of a page`,
)
