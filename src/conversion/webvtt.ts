/** Reads WebVTT and tells whether it can be served as it is. */
import { type Cue, parseTiming, renderWebvtt, toCueText, toLines } from './cue.ts'
import { unconvertible } from './refusal.ts'

/** What a WebVTT text holds. */
export interface Webvtt {
  readonly cues: readonly Cue[]
  /** Its style sheets and regions that do no harm, line by line. */
  readonly blocks: readonly (readonly string[])[]
  /** Whether a strict player shows all of it, and a careless one takes nothing of it for HTML. */
  readonly isValid: boolean
}

/** Whether a text, without a byte order mark, says that it is WebVTT. */
export function isWebvtt(text: string): boolean {
  return /^WEBVTT(?:[ \t\r\n]|$)/.test(text)
}

/**
 * Reads a text that says that it is WebVTT.
 * @throws ConversionRefusal `unconvertible` naming the line.
 */
export function parseWebvtt(text: string): Webvtt {
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

/** Writes what is left of a WebVTT text once all that is not valid is mended or gone. */
export function mendWebvtt({ cues, blocks }: Webvtt): string {
  return renderWebvtt(
    cues.filter((cue) => cue.lines.length > 0),
    blocks,
  )
}

interface Line {
  readonly text: string
  /** From 1. */
  readonly number: number
}

/** The blocks of lines between empty ones. */
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

/** Whatever has times in one of its first lines is a cue, even one that is called `NOTE`. */
function isCue(block: readonly Line[]): boolean {
  return block.slice(0, 2).some(hasArrow) || !/^(?:NOTE|STYLE|REGION)(?:[ \t]|$)/.test(block[0]?.text ?? '')
}

function isNote([first]: readonly Line[]): boolean {
  return first?.text.startsWith('NOTE') ?? false
}

/** Neither reaches out of the file, nor ends early. */
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
    throw unconvertible(`Line ${(line ?? first)?.number ?? 1}: a cue begins with its times.`)
  const { startMs, endMs, rest } = timing
  if (endMs <= startMs) throw unconvertible(`Line ${line.number}: the cue does not end after it begins.`)
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

/** Whatever is no markup of WebVTT becomes text; a `>` by itself is left, since it is valid and common. */
function neutralise(line: string): string {
  return toCueText(line, (tag) => (spans.test(tag) || moment.test(tag) ? tag : undefined))
}
