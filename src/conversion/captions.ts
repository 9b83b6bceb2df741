/** Makes captions fit for the web: SubRip becomes WebVTT, and WebVTT that is valid stays as it is. Runs in the worker alone. */

import { isUtf8 } from 'node:buffer'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isWebvtt, normalizeWebvtt, parseSubrip, parseWebvtt, renderWebvtt } from './captions/formats.ts'
import { type MadeFile, type Outcome, unconvertible } from './job.ts'

const MAX_MEBIBYTES = 5

const MADE: MadeFile = { name: 'captions.vtt', mediaType: 'text/vtt' }

/**
 * Writes the captions into the folder, unless they are served as they are.
 * @throws ConversionRejection `unconvertible`
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
 * @throws ConversionRejection `unconvertible`
 */
export function toWebvtt(bytes: Uint8Array): string | undefined {
  const { text, isUtf8 } = decodeCaptions(bytes)
  if (!isWebvtt(text)) return renderSubrip(text)
  const webvtt = parseWebvtt(text)
  return webvtt.isValid && isUtf8 ? undefined : normalizeWebvtt(webvtt)
}

function renderSubrip(text: string): string {
  const cues = parseSubrip(text)
  if (cues.length === 0) throw unconvertible('The captions hold no text.')
  return renderWebvtt(cues)
}

/** Captions as text, without a byte order mark. */
export interface CaptionText {
  readonly text: string
  readonly isUtf8: boolean
}

/** Western languages write a seventh of their letters with accents, a short text more; other alphabets nearly all. */
const MAX_ACCENTED_SHARE = 0.5

/**
 * UTF-8 and UTF-16, with a mark or without; anything else is read as Windows-1252 as long as it looks like a western language.
 * @throws ConversionRejection `unconvertible`
 */
export function decodeCaptions(bytes: Uint8Array): CaptionText {
  const encoding = utf16Of(bytes)
  const isPlain = encoding === undefined && isUtf8(bytes)
  const text = isPlain ? new TextDecoder().decode(bytes) : decodeOther(bytes, encoding)
  if (text.includes('\0')) throw unconvertible('The file holds no text.')
  return { text, isUtf8: isPlain }
}

/** By its mark, or by the zeros that the first letter of a header or a number has beside it. */
function utf16Of([first, second]: Uint8Array): 'utf-16le' | 'utf-16be' | undefined {
  if (first === 0xff && second === 0xfe) return 'utf-16le'
  if (first === 0xfe && second === 0xff) return 'utf-16be'
  if (first === 0 && second !== 0) return 'utf-16be'
  return second === 0 ? 'utf-16le' : undefined
}

function decodeOther(bytes: Uint8Array, encoding: string | undefined): string {
  if (encoding === undefined) return decodeWestern(bytes)
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes)
  } catch (error) {
    throw unconvertible('The file is neither UTF-8 nor UTF-16.', error)
  }
}

function decodeWestern(bytes: Uint8Array): string {
  const text = new TextDecoder('windows-1252').decode(bytes)
  const letters = text.match(/\p{L}/gu)?.length ?? 0
  const accented = text.match(/[^\p{ASCII}\p{P}\p{S}\p{Z}]/gu)?.length ?? 0
  if (accented > letters * MAX_ACCENTED_SHARE)
    throw unconvertible('The encoding of the file is not known; save it as UTF-8.')
  return text
}
