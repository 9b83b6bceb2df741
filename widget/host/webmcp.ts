/**
 * Records tools that the page registers through WebMCP (`ModelContext`) after this code has loaded, even in
 * browsers without WebMCP. Native WebMCP continues to work.
 */
import { shared, sharedPage } from './page.ts'

/** See WebMCP, ModelContextTool. */
interface ModelContextTool {
  readonly name: string
  readonly description?: string
  readonly inputSchema?: unknown
  readonly annotations?: unknown
  execute(input: Record<string, unknown>): unknown
}

export type WebMcpTools = Map<string, ModelContextTool>

type Method = (...given: unknown[]) => unknown
type ModelContext = Partial<Record<string, Method>>

/** Returns the tools registered so far; the first call starts recording. */
export function recordWebMcp(): WebMcpTools {
  return shared('webmcp', startRecording)
}

function startRecording(): WebMcpTools {
  const tools: WebMcpTools = new Map()
  const recorders = createRecorders(tools)
  const places = [document, navigator] as { modelContext?: ModelContext }[]
  const native = places.find(
    ({ modelContext }) => typeof modelContext?.registerTool === 'function',
  )?.modelContext
  if (native !== undefined) {
    for (const [name, record] of Object.entries(recorders)) wrap(native, name, record as Method)
  } else {
    const value = Object.assign(new EventTarget(), recorders)
    for (const place of places) define(place, 'modelContext', value)
  }
  return tools
}

/** Calls the browser's native method first; if it throws, nothing is recorded. */
function wrap(native: ModelContext, name: string, record: Method): void {
  const own = native[name]
  if (own === undefined) return
  define(native, name, (...given: unknown[]) => {
    const returned = own.apply(native, given)
    record(...given)
    return returned
  })
}

function define(holder: object, name: string, value: unknown): void {
  Object.defineProperty(holder, name, { value, configurable: true })
}

/** `unregisterTool` and `provideContext` come from earlier drafts, which pages still use. */
function createRecorders(tools: WebMcpTools) {
  const publish = () => sharedPage().widget?.publishTools()
  const unregisterTool = (name: string) => {
    tools.delete(name)
    publish()
  }
  const addAll = (added: readonly ModelContextTool[]) => {
    for (const tool of added) tools.set(tool.name, tool)
    publish()
  }
  return {
    async registerTool(tool: ModelContextTool, { signal }: { readonly signal?: AbortSignal } = {}) {
      if (signal?.aborted) return
      addAll([tool])
      signal?.addEventListener('abort', () => unregisterTool(tool.name))
    },
    unregisterTool,
    provideContext(context?: { readonly tools?: readonly ModelContextTool[] }) {
      tools.clear()
      addAll(context?.tools ?? [])
    },
  }
}
