/** Converts SubRip captions to WebVTT and repairs invalid WebVTT. Runs only in the worker process. */
import { isUtf8 } from 'node:buffer'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type MadeFile, type Outcome, unconvertible } from './job.ts'

const MAX_MEBIBYTES = 5
const MADE: MadeFile = { name: 'captions.vtt', mediaType: 'text/vtt' }

/**
 * Converts captions; writes nothing if the original is valid WebVTT. @throws ConversionRejection
 * `unconvertible`
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
 * Returns undefined if the bytes are already valid UTF-8 WebVTT. @throws ConversionRejection `unconvertible`
 */
export function toWebvtt(bytes: Uint8Array): string | undefined {
  const { text, isUtf8 } = decodeCaptions(bytes)
  if (!/^WEBVTT(?:[ \t\r\n]|$)/.test(text)) return renderSubrip(text)
  const { cues, blocks, isValid } = parseWebvtt(text)
  if (isValid && isUtf8) return undefined
  const spoken = cues.filter((cue) => cue.lines.length > 0)
  return renderWebvtt(spoken, blocks)
}

function renderSubrip(text: string): string {
  const cues = parseSubrip(text)
  if (cues.length === 0) throw unconvertible('The captions contain no text.')
  return renderWebvtt(cues)
}

/**
 * Above this fraction of non-ASCII letters, text is not in a Western language. In Western languages, about
 * one letter in seven is accented, or more in short texts. In other alphabets, nearly all letters are
 * non-ASCII.
 */
const MAX_ACCENTED_SHARE = 0.5

function decodeCaptions(bytes: Uint8Array): { readonly text: string; readonly isUtf8: boolean } {
  const encoding = utf16Of(bytes)
  const isPlain = encoding === undefined && isUtf8(bytes)
  const text = isPlain ? new TextDecoder().decode(bytes) : decodeOther(bytes, encoding)
  if (text.includes('\0')) throw unconvertible('The file is not a text file.')
  return { text, isUtf8: isPlain }
}

/** Detects UTF-16 by its byte order mark or by the zero byte in its first character. */
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
    throw unconvertible('The encoding of the file is unknown; save the file as UTF-8.')
  return text
}

interface Cue {
  readonly startMs: number
  readonly endMs: number
  readonly id?: string
  readonly settings?: string
  /** Text in WebVTT syntax, without empty lines. */
  readonly lines: readonly string[]
}

const TIME = String.raw`(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})`
const timing = new RegExp(String.raw`^\s*${TIME}\s*-->\s*${TIME}(?:\s+(\S.*))?\s*$`, 's')

/**
 * Parses a SubRip or WebVTT timing line such as `00:00:01,500 --> 00:00:04,000`. Returns undefined for any
 * other line.
 */
function parseTiming(line: string) {
  const match = timing.exec(line)
  if (match === null) return undefined
  const [, ...parts] = match
  const startMs = toMs(parts.slice(0, 4))
  const endMs = toMs(parts.slice(4, 8))
  if (startMs === undefined || endMs === undefined) return undefined
  return { startMs, endMs, rest: parts[8]?.trimEnd() ?? '' }
}

function toMs([hours = '0', minutes = '', seconds = '', fraction = '']: (string | undefined)[]):
  | number
  | undefined {
  if (Number(minutes) > 59 || Number(seconds) > 59) return undefined
  const wholeSeconds = (Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)
  return wholeSeconds * 1000 + Number(fraction.padEnd(3, '0'))
}

function toLines(text: string): string[] {
  return text.split(/\r\n|\n|\r/)
}

function renderWebvtt(cues: readonly Cue[], blocks: readonly (readonly string[])[] = []): string {
  const inOrder = cues.toSorted((one, other) => one.startMs - other.startMs)
  const parts = [['WEBVTT'], ...blocks, ...inOrder.map(renderCue)]
  return `${parts.map((lines) => lines.join('\n')).join('\n\n')}\n`
}

function renderCue({ startMs, endMs, id, settings, lines }: Cue): string[] {
  const place = settings === undefined || settings === '' ? '' : ` ${settings}`
  const times = `${renderTime(startMs)} --> ${renderTime(endMs)}${place}`
  return [...(id === undefined ? [] : [id]), times, ...lines]
}

function renderTime(ms: number): string {
  const pad = (value: number, digits: number) => String(Math.floor(value)).padStart(digits, '0')
  return `${pad(ms / 3_600_000, 2)}:${pad((ms / 60_000) % 60, 2)}:${pad((ms / 1000) % 60, 2)}.${pad(ms % 1000, 3)}`
}

const entity = /^&(#\d{1,7}|#x[\da-f]{1,6}|[a-z][a-z\d]{1,30});/i

/**
 * Escapes markup characters. Preserves entities and any `>` that is not part of a tag or an arrow, and replaces
 * tags with the result of `toMarkup`, if any.
 */
function toCueText(line: string, toMarkup: (tag: string) => string | undefined): string {
  return line.replaceAll(/<[^<>]*>|[<>&]/g, (piece, offset: number) => {
    if (piece === '&') return entity.test(line.slice(offset, offset + 40)) ? piece : '&amp;'
    // An arrow would start another cue; any other `>` is ordinary text.
    const isArrow = line.slice(0, offset + piece.length).endsWith('-->')
    if (piece === '>') return isArrow ? '&gt;' : piece
    return (isArrow ? undefined : toMarkup(piece)) ?? escapeText(piece)
  })
}

function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/**
 * `isValid` means that strict players show all cues and lenient players find no HTML in them. `blocks` are
 * style sheets and regions.
 */
function parseWebvtt(text: string) {
  const [header = [], ...rest] = toBlocks(text)
  const astray = header.find(hasArrow)
  if (astray) throw unconvertible(`Line ${astray.number}: an empty line is missing before the first cue.`)
  const cues: Cue[] = []
  const blocks: (readonly string[])[] = []
  let isValid = true
  for (const block of rest) {
    if (isCue(block)) {
      const read = parseCue(block)
      isValid &&= read.isValid && read.cue.startMs >= (cues.at(-1)?.startMs ?? 0)
      cues.push(read.cue)
    } else if (isNote(block)) isValid &&= !block.some(hasArrow)
    else if (cues.length === 0 && isHarmless(block)) blocks.push(block.map((line) => line.text))
    else isValid = false
  }
  return { cues, blocks, isValid }
}

interface Line {
  readonly text: string
  readonly number: number
}

function toBlocks(text: string): Line[][] {
  const blocks: Line[][] = [[]]
  for (const [index, line] of toLines(text).entries()) {
    if (line !== '') blocks.at(-1)?.push({ text: line, number: index + 1 })
    else if (blocks.at(-1)?.length !== 0) blocks.push([])
  }
  return blocks.filter((block) => block.length > 0)
}

function hasArrow({ text }: Line): boolean {
  return text.includes('-->')
}

/** A block with a timing line among its first two lines is a cue, even if it starts with `NOTE`. */
function isCue(block: readonly Line[]): boolean {
  return block.slice(0, 2).some(hasArrow) || !/^(?:NOTE|STYLE|REGION)(?:[ \t]|$)/.test(block[0]?.text ?? '')
}

function isNote([first]: readonly Line[]): boolean {
  return first?.text.startsWith('NOTE') ?? false
}

/** Returns false for blocks that refer to other resources or end the style sheet early. */
function isHarmless(block: readonly Line[]): boolean {
  return !block.some(({ text }) => /url\s*\(|@import|\\|-->|</i.test(text))
}

const strictTime = String.raw`(?:\d{2,}:)?[0-5]\d:[0-5]\d\.\d{3}`
const strictTiming = new RegExp(String.raw`^${strictTime}[ \t]+-->[ \t]+${strictTime}(?:[ \t]|$)`)
const setting = /^(?:vertical|line|position|size|align|region):[\w.,%+-]+$/

function parseCue(block: readonly Line[]): { cue: Cue; isValid: boolean } {
  const [first, second] = block
  const place = first !== undefined && hasArrow(first) ? 0 : 1
  const line = place === 0 ? first : second
  const timing = parseTiming(line?.text ?? '')
  if (timing === undefined || line === undefined)
    throw unconvertible(`Line ${(line ?? first)?.number ?? 1}: a cue must start with its times.`)
  const { startMs, endMs, rest } = timing
  if (endMs <= startMs) throw unconvertible(`Line ${line.number}: the cue must end after it starts.`)
  const given = rest.split(/[ \t]+/).filter((word) => word !== '')
  const settings = given.filter((word) => setting.test(word))
  const texts = block.slice(place + 1).map((one) => one.text)
  const lines = texts.map(neutralise).filter((one) => one.trim() !== '')
  const id = place === 0 ? undefined : first?.text
  const isNameValid = id === undefined || !/[<>&]/.test(id)
  const isValid =
    isNameValid &&
    strictTiming.test(line.text) &&
    settings.length === given.length &&
    texts.every((one, index) => one === lines[index])
  const name = id === undefined || !isNameValid ? {} : { id }
  return { cue: { startMs, endMs, ...name, settings: settings.join(' '), lines }, isValid }
}

const spans = /^<\/?(?:c|i|b|u|ruby|rt|v|lang)(?:\.[^\s.<>&]+)*(?:[ \t][^<>&]*)?>$/
const moment = new RegExp(`^<${strictTime}>$`)

/** Escapes everything except WebVTT markup, entities and single `>` characters. */
function neutralise(line: string): string {
  return toCueText(line, (tag) => (spans.test(tag) || moment.test(tag) ? tag : undefined))
}

/** Parses SubRip leniently: cues may lack numbers, contain empty lines and come in any order. */
function parseSubrip(text: string): Cue[] {
  const lines = toLines(text)
  const starts = lines.flatMap((line, index) =>
    line.includes('-->') && isTiming(line, index) ? [index] : [],
  )
  const first = starts[0]
  if (first === undefined) throw unconvertible('The file is neither SubRip nor WebVTT: it contains no cues.')
  const before = lines.slice(0, first).findIndex((line) => line.trim() !== '' && !isNumber(line))
  if (before !== -1) throw unconvertible(`Line ${before + 1}: this is neither SubRip nor WebVTT.`)
  const cues = starts.map((start, index) => toCue(lines, start, starts[index + 1] ?? lines.length))
  return cues.filter((cue) => cue.lines.length > 0)
}

/**
 * Returns whether a line with an arrow starts a cue; cue text may also contain arrows.
 * @throws ConversionRejection `unconvertible` for an arrow after an invalid time.
 */
function isTiming(line: string, index: number): boolean {
  if (parseTiming(line) !== undefined) return true
  if (/^\s*-?\d+:[\d\s:.,]*-->/.test(line)) throw unconvertible(`Line ${index + 1}: the times are invalid.`)
  return false
}

function isNumber(line: string): boolean {
  return /^\s*\d+\s*$/.test(line)
}

function toCue(lines: readonly string[], start: number, next: number): Cue {
  const { startMs, endMs } = parseTiming(lines[start] ?? '') ?? { startMs: 0, endMs: 0 }
  if (endMs <= startMs) throw unconvertible(`Line ${start + 1}: the cue must end after it starts.`)
  const text = lines.slice(start + 1, next)
  // Drops the next cue's number, which precedes its times.
  if (next < lines.length && isNumber(text.at(-1) ?? '')) text.pop()
  return { startMs, endMs, lines: text.map(toText).filter((line) => line !== '') }
}

/** Preserves bold, italic and underlined text. Drops colors, fonts and positions. */
function toText(line: string): string {
  const bare = line
    .replaceAll(/\{\\[^{}]*\}|<\/?font\b[^<>]*>/gi, '')
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]/gu, ' ')
  return toCueText(bare, (tag) => /^<\/?[biu]>$/i.exec(tag)?.[0].toLowerCase()).trim()
}
