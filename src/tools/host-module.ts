/** Loads the module that `PARLEY_HOOKS` names. */
import { stat } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { StartupError } from '../startup-error.ts'
import { type ReadHooks, readHooks } from './host.ts'

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
