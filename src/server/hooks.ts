/** Reads an embedding program's hooks (tools and callbacks) or those in `PARLEY_HOOKS`. */
import { stat } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import type { OnConversionEnd, OnUploadComplete } from '../artifacts/metadata.ts'
import { StartupError } from '../lib/errors.ts'
import { type HostTools, listGiven, readTool, rejectTool } from '../tools/host-tools.ts'
import type { ServerTool } from '../tools/tools.ts'

export interface HostHooks {
  readonly tools?: HostTools
  readonly onUploadComplete?: OnUploadComplete
  readonly onConversionEnd?: OnConversionEnd
}

export interface ReadHooks {
  readonly tools: readonly ServerTool[]
  readonly onUploadComplete: OnUploadComplete | undefined
  readonly onConversionEnd: OnConversionEnd | undefined
}

/** Validates hooks; error messages start with `source`. */
export function readHooks(hooks: HostHooks, source: string): ReadHooks {
  const { tools, onUploadComplete, onConversionEnd } = hooks
  for (const [name, handler] of Object.entries({ onUploadComplete, onConversionEnd })) {
    if (handler !== undefined && typeof handler !== 'function')
      throw new StartupError(`${source}: ${name} must be a function.`)
  }
  const read = new Map<string, ServerTool>()
  for (const given of listGiven(tools, source)) {
    const tool = readTool(given, source)
    if (read.has(tool.name)) rejectTool(source, given.namePath, `repeats '${tool.name}'`)
    read.set(tool.name, tool)
  }
  return { tools: [...read.values()], onUploadComplete, onConversionEnd }
}

/** Merges hooks; for duplicate tool names and callbacks, uses `first`. */
export function joinHooks(first: ReadHooks, second: ReadHooks): ReadHooks {
  const names = new Set(first.tools.map(({ name }) => name))
  return {
    tools: [...first.tools, ...second.tools.filter(({ name }) => !names.has(name))],
    onUploadComplete: first.onUploadComplete ?? second.onUploadComplete,
    onConversionEnd: first.onConversionEnd ?? second.onConversionEnd,
  }
}

export async function loadHostModule(path: string): Promise<ReadHooks> {
  const source = `PARLEY_HOOKS (${path})`
  await stat(path).catch((cause: NodeJS.ErrnoException) => {
    const why = cause.code === 'ENOENT' ? 'does not exist' : `cannot be read (${cause.code})`
    throw new StartupError(`${source}: the file ${why}.`, { cause })
  })
  const exported = await import(pathToFileURL(path).href).catch((cause: unknown) => {
    const why = cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause)
    throw new StartupError(`${source}: the file could not be loaded: ${why}`, { cause })
  })
  const { tools, onUploadComplete, onConversionEnd } = exported
  if (tools === undefined && onUploadComplete === undefined && onConversionEnd === undefined) {
    throw new StartupError(`${source}: the file must export tools, onUploadComplete or onConversionEnd.`)
  }
  return readHooks(exported, source)
}
