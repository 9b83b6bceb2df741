/**
 * Tools that the page registers through WebMCP, for agents of any kind: recorded from the moment this code is loaded, whether the
 * browser has WebMCP or not. The page's own use of it stays what it is. Protocol: WebMCP, ModelContext.
 */
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { toTool } from './page-tools.ts'
import { isToolName } from './read-options.ts'
import { toErrorResult, toResult } from './tool-result.ts'
import type { HostedTool } from './tool-server.ts'

/** Protocol: WebMCP, ModelContextTool. */
interface ModelContextTool {
  readonly name: string
  readonly description?: string
  readonly inputSchema?: unknown
  readonly annotations?: unknown
  execute(input: Record<string, unknown>, client?: unknown): unknown
}

/** What of it is used here; `unregisterTool` and the two after it are of earlier drafts, which pages still call. */
interface ModelContext extends EventTarget {
  registerTool(tool: ModelContextTool, options?: { readonly signal?: AbortSignal }): unknown
  unregisterTool?(name: string): unknown
  provideContext?(context?: { readonly tools?: readonly ModelContextTool[] }): unknown
  clearContext?(): unknown
  getTools?(): Promise<readonly NativeTool[]>
  executeTool?(tool: NativeTool, input: string, options: { readonly signal: AbortSignal }): Promise<unknown>
}

/** What the browser tells of a registered tool; its schema came as text in the first versions. */
type NativeTool = Omit<ModelContextTool, 'execute'>

interface Recorded {
  readonly tools: Map<string, ModelContextTool>
  readonly listeners: Set<() => void>
  /** The browser's own; undefined where it has none. */
  readonly native: ModelContext | undefined
}

const key = Symbol.for('parley.webmcp')

/** The recording of this page; begins with the first call. */
export function recordWebMcp(): Recorded {
  const holder = window as unknown as Record<symbol, Recorded | undefined>
  if (holder[key] === undefined) {
    const known = findContexts()
    const recorded: Recorded = { tools: new Map(), listeners: new Set(), native: known[0] }
    holder[key] = recorded
    for (const context of known) listenIn(context, recorded)
    if (known.length === 0) install(recorded)
  }
  return holder[key]
}

type Holder = { modelContext?: ModelContext }

function findContexts(): ModelContext[] {
  const found = [document as Holder, navigator as Holder].flatMap(({ modelContext }) => modelContext ?? [])
  return [...new Set(found)]
}

/** Notes what the page registers while the browser does what it always did. */
function listenIn(context: ModelContext, recorded: Recorded): void {
  const notes = createNotes(recorded)
  for (const [name, note] of Object.entries(notes) as [keyof ModelContext, (...given: unknown[]) => void][]) {
    const own = context[name] as ((...given: unknown[]) => unknown) | undefined
    if (typeof own !== 'function') continue
    const value = (...given: unknown[]) => {
      const returned = own.apply(context, given)
      // What the browser refuses is not a tool.
      const noteIt = () => note(...given)
      if (returned instanceof Promise) returned.then(noteIt, () => {})
      else noteIt()
      return returned
    }
    Object.defineProperty(context, name, { value, configurable: true, writable: true })
  }
}

/** Where the browser has none: registering is all that it can do. */
function install(recorded: Recorded): void {
  const notes = createNotes(recorded)
  const value = Object.assign(new EventTarget(), {
    async registerTool(tool: ModelContextTool, options?: { readonly signal?: AbortSignal }): Promise<void> {
      if (typeof tool?.name !== 'string' || typeof tool.execute !== 'function') {
        throw new TypeError('A tool needs a name and a function execute.')
      }
      if (recorded.tools.has(tool.name))
        throw new DOMException(`There is a tool ${tool.name}.`, 'InvalidStateError')
      notes.registerTool(tool, options)
    },
    unregisterTool: notes.unregisterTool,
    provideContext: notes.provideContext,
    clearContext: notes.clearContext,
    getTools: async () =>
      [...recorded.tools.values()].map(({ execute: _execute, ...tool }) => ({ ...tool, window, origin })),
  })
  recorded.listeners.add(() => value.dispatchEvent(new Event('toolchange')))
  for (const holder of [document, navigator]) {
    Object.defineProperty(holder, 'modelContext', { value, configurable: true, writable: true })
  }
}

function createNotes({ tools, listeners }: Recorded) {
  const tell = () => {
    for (const listener of [...listeners]) listener()
  }
  const remove = (name: string, tool = tools.get(name)) => {
    if (tools.get(name) !== tool || !tools.delete(name)) return
    tell()
  }
  const registerTool = (tool: ModelContextTool, options?: { readonly signal?: AbortSignal }) => {
    if (options?.signal?.aborted) return
    tools.set(tool.name, tool)
    options?.signal?.addEventListener('abort', () => remove(tool.name, tool), { once: true })
    tell()
  }
  const clearContext = () => {
    tools.clear()
    tell()
  }
  const provideContext = (context?: { readonly tools?: readonly ModelContextTool[] }) => {
    tools.clear()
    for (const tool of context?.tools ?? []) tools.set(tool.name, tool)
    tell()
  }
  return { registerTool, unregisterTool: (name: string) => remove(name), provideContext, clearContext }
}

/** Those of the page's tools that the chat API can name. */
export async function hostWebMcpTools({ tools, native }: Recorded): Promise<[name: string, HostedTool][]> {
  const hosted = [...tools.values()].map((tool): [string, HostedTool] => [
    tool.name,
    {
      tool: describe(tool),
      call: (args) =>
        settle(() => tool.execute(args, { requestUserInteraction: (ask: () => unknown) => ask() })),
    },
  ])
  return [...(await hostEarlierTools(native)), ...hosted].filter(([name]) => isToolName(name))
}

/** What was registered before this code was loaded, where the browser tells. */
async function hostEarlierTools(native: ModelContext | undefined): Promise<[name: string, HostedTool][]> {
  if (native?.executeTool === undefined) return []
  const listed = (await native.getTools?.().catch(() => [])) ?? []
  return listed.map((tool) => [
    tool.name,
    {
      tool: describe(tool),
      call: (args, signal) => settle(() => native.executeTool?.(tool, JSON.stringify(args), { signal })),
    },
  ])
}

function describe({ description, inputSchema, annotations }: NativeTool): HostedTool['tool'] {
  return toTool(
    description,
    typeof inputSchema === 'string' ? JSON.parse(inputSchema) : inputSchema,
    annotations,
  )
}

async function settle(call: () => unknown): Promise<CallToolResult> {
  try {
    return toResult(await call())
  } catch (error) {
    return toErrorResult(error)
  }
}
