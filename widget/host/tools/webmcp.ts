/**
 * Tools that the page registers through WebMCP, for agents of any kind: recorded from the moment this code is loaded, whether the
 * browser has WebMCP or not. The page's own use of it stays what it is. Protocol: WebMCP, ModelContext.
 */
import { shared } from '../page.ts'
import { isToolName } from '../read-options.ts'
import { type HostedTool, toErrorResult, toResult, toTool } from './page-tools.ts'

/** Protocol: WebMCP, ModelContextTool. */
interface ModelContextTool {
  readonly name: string
  readonly description?: string
  readonly inputSchema?: unknown
  readonly annotations?: unknown
  execute(input: Record<string, unknown>): unknown
}

type Tools = Map<string, ModelContextTool>

interface Recorded {
  readonly tools: Tools
  readonly listeners: Set<() => void>
}

type Method = (...given: unknown[]) => unknown
type ModelContext = Partial<Record<string, Method>>

/** The recording of this page; begins with the first call. */
export function recordWebMcp(): Recorded {
  return shared('webmcp', begin)
}

function begin(): Recorded {
  const recorded: Recorded = { tools: new Map(), listeners: new Set() }
  const notes = takeNotes(recorded)
  const places = [document, navigator] as { modelContext?: ModelContext }[]
  const native = places.find(({ modelContext }) => modelContext)?.modelContext
  if (native !== undefined) {
    for (const [name, note] of Object.entries(notes)) listenIn(native, name, note as Method)
  } else {
    const value = Object.assign(new EventTarget(), notes)
    for (const place of places) define(place, 'modelContext', value)
  }
  return recorded
}

/** The browser does what it always did; what it throws at is no tool. */
function listenIn(native: ModelContext, name: string, note: Method): void {
  const own = native[name]
  if (own === undefined) return
  const value = (...given: unknown[]) => {
    const returned = own.apply(native, given)
    note(...given)
    return returned
  }
  define(native, name, value)
}

function define(holder: object, name: string, value: unknown): void {
  Object.defineProperty(holder, name, { value, configurable: true })
}

/** All but the first are of earlier drafts, which pages still call. */
function takeNotes({ tools, listeners }: Recorded) {
  const change = (make: () => void) => {
    make()
    for (const tell of listeners) tell()
  }
  const unregisterTool = (name: string) => change(() => tools.delete(name))
  const provideContext = (context?: { readonly tools?: readonly ModelContextTool[] }) =>
    change(() => {
      tools.clear()
      for (const tool of context?.tools ?? []) tools.set(tool.name, tool)
    })
  return {
    async registerTool(tool: ModelContextTool, { signal }: { readonly signal?: AbortSignal } = {}) {
      if (signal?.aborted) return
      change(() => tools.set(tool.name, tool))
      signal?.addEventListener('abort', () => unregisterTool(tool.name))
    },
    unregisterTool,
    provideContext,
  }
}

/** Those of the page's tools that the chat API can name. */
export function hostWebMcpTools(tools: Tools): [name: string, HostedTool][] {
  return [...tools.values()]
    .filter(({ name }) => isToolName(name))
    .map((tool) => [
      tool.name,
      {
        tool: toTool(tool.description, tool.inputSchema, tool.annotations),
        async call(args) {
          try {
            return toResult(await tool.execute(args))
          } catch (error) {
            return toErrorResult(error)
          }
        },
      },
    ])
}
