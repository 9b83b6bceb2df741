/** Makes captions fit for the web: SubRip becomes WebVTT, and WebVTT that is valid stays as it is. Runs in the worker alone. */
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { decodeCaptions } from './caption-text.ts'
import { renderWebvtt } from './cue.ts'
import type { MadeFile, Outcome } from './job.ts'
import { unconvertible } from './refusal.ts'
import { parseSubrip } from './subrip.ts'
import { isWebvtt, mendWebvtt, parseWebvtt } from './webvtt.ts'

const MAX_MEBIBYTES = 5

const MADE: MadeFile = { name: 'captions.vtt', mediaType: 'text/vtt' }

/**
 * Writes the captions into the folder, unless they are served as they are.
 * @throws ConversionRefusal `unconvertible`
 */
export async function convertCaptions(source: string, folder: string): Promise<Outcome> {
  const { size } = await stat(source)
  if (size > MAX_MEBIBYTES * 1024 ** 2)
    throw unconvertible(`The captions are larger than ${MAX_MEBIBYTES} MiB.`)
  const webvtt = toWebvtt(await readFile(source))
  if (webvtt === undefined) return { unchanged: { mediaType: MADE.mediaType } }
  await writeFile(join(folder, MADE.name), webvtt)
  return { made: MADE }
}

/**
 * The captions as WebVTT; undefined when that is what the bytes are.
 * @throws ConversionRefusal `unconvertible`
 */
export function toWebvtt(bytes: Uint8Array): string | undefined {
  const { text, isUtf8 } = decodeCaptions(bytes)
  if (!isWebvtt(text)) return renderSubrip(text)
  const webvtt = parseWebvtt(text)
  return webvtt.isValid && isUtf8 ? undefined : mendWebvtt(webvtt)
}

function renderSubrip(text: string): string {
  const cues = parseSubrip(text)
  if (cues.length === 0) throw unconvertible('The captions hold no text.')
  return renderWebvtt(cues)
}
