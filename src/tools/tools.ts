/** Tools that run on the server, of the host program or of an MCP server. */
import { type JsonSchema, Text } from '../lib/formats/json-schema.ts'

export interface ToolCallContext {
  /** Aborted when the client disconnects or the tool times out. */
  readonly signal: AbortSignal
  readonly agentId: string
  readonly tenantId: string
  readonly requestId: string
}

export type ToolAnswer = { readonly text: string } | { readonly problem: string }

export interface ServerTool {
  readonly name: string
  readonly description: string | undefined
  readonly inputSchema: JsonSchema | undefined
  readonly origin: 'host' | 'mcp'
  /** Takes arguments that fit the schema. What it throws is logged and hidden from the model. */
  run(args: Readonly<Record<string, unknown>>, context: ToolCallContext): Promise<ToolAnswer>
}

export interface Toolbox {
  find(name: string): ServerTool | undefined
  /** All tools; the same array until one is added, removed or changed. */
  list(): readonly ServerTool[]
  health(): Readonly<Record<string, 'up' | 'down'>>
  close(): Promise<void>
}

/** The host's tools and those of another toolbox; of two with one name the host's is used. */
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

export const ToolName = Text.regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, _ or -').refine(
  (name) => !name.startsWith(pageToolPrefix),
  `must not start with ${pageToolPrefix}, which marks the tools of a page`,
)
