/** Looks through a project: JSON or a ZIP archive, which is served as it is if nothing is wrong with it. Runs in the worker alone. */
import { isUtf8 } from 'node:buffer'
import { readFile, stat } from 'node:fs/promises'
import { depthOf } from '../json-outline.ts'
import { assertArchive } from './archive.ts'
import type { Outcome } from './job.ts'
import { unconvertible } from './refusal.ts'
import { isArchive } from './sniff.ts'

const MAX_JSON_MEBIBYTES = 64
/** As of any JSON that is sent to the service. Security: 2.5. */
const MAX_JSON_DEPTH = 64

/**
 * Checks a project.
 * @throws ConversionRefusal `dangerous` for archives that are bombs or whose names lead out of their folder.
 */
export async function checkProject(source: string): Promise<Outcome> {
  if (await isArchive(source)) {
    await assertArchive(source)
    return { unchanged: { mediaType: 'application/zip' } }
  }
  const { size } = await stat(source)
  if (size > MAX_JSON_MEBIBYTES * 1024 ** 2)
    throw unconvertible(`The project is no ZIP archive, and larger than ${MAX_JSON_MEBIBYTES} MiB.`)
  assertJson(await readFile(source))
  return { unchanged: { mediaType: 'application/json' } }
}

/** @throws ConversionRefusal `unconvertible` for anything but an object or array in UTF-8 of moderate depth. */
export function assertJson(bytes: Buffer): void {
  if (!isUtf8(bytes)) throw unconvertible('The project is neither a ZIP archive nor JSON in UTF-8.')
  if (depthOf(bytes) > MAX_JSON_DEPTH)
    throw unconvertible(`The project's JSON is nested deeper than ${MAX_JSON_DEPTH}.`)
  let value: unknown
  try {
    value = JSON.parse(bytes.toString())
  } catch (error) {
    throw unconvertible('The project is neither a ZIP archive nor JSON.', error)
  }
  if (typeof value !== 'object' || value === null)
    throw unconvertible('The project is a single value, and no object or list.')
}
