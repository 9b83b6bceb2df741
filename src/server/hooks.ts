/** What a host brings along: its tools, and what it does when an upload is complete. */

import { stat } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import type { OnUploadComplete } from '../artifacts/metadata.ts'
import { StartupError } from '../lib/errors.ts'
import { type HostTools, listGiven, readTool, rejectTool } from '../tools/host-tools.ts'
import type { ServerTool } from '../tools/tools.ts'

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
    if (read.has(tool.name)) rejectTool(source, given.namePath, `repeats '${tool.name}'`)
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

/**
 * What the ES module at an absolute path exports as `tools` and `onUploadComplete`. Decision: 9 (Host hooks).
 * @throws StartupError naming the file, and the export if one is wrong.
 */
export async function loadHostModule(path: string): Promise<ReadHooks> {
  const source = `PARLEY_HOOKS (${path})`
  await stat(path).catch((cause: NodeJS.ErrnoException) => {
    const why = cause.code === 'ENOENT' ? 'is not there' : `cannot be read (${cause.code})`
    throw new StartupError(`${source}: the file ${why}.`, { cause })
  })
  const exported = await import(pathToFileURL(path).href).catch((cause: unknown) => {
    throw new StartupError(`${source}: the file failed while it was loaded: ${sentenceOf(cause)}`, { cause })
  })
  if (exported.tools === undefined && exported.onUploadComplete === undefined) {
    throw new StartupError(`${source}: the file exports neither tools nor onUploadComplete.`)
  }
  return readHooks(exported, source)
}

function sentenceOf(thrown: unknown): string {
  return thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown)
}
