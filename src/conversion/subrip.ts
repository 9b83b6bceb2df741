/** Reads SubRip captions (`.srt`), which nobody ever specified, as leniently as their times allow. */
import { type Cue, parseTiming, toCueText, toLines } from './cue.ts'
import { unconvertible } from './refusal.ts'

/**
 * The cues of a SubRip text. Numbers may be missing, texts may hold empty lines, cues may come in any order; cues without text
 * are left out.
 * @throws ConversionRefusal `unconvertible` naming the line.
 */
export function parseSubrip(text: string): Cue[] {
  const lines = toLines(text)
  const starts = lines.flatMap((line, index) =>
    line.includes('-->') && isTiming(line, index) ? [index] : [],
  )
  const first = starts[0]
  if (first === undefined) throw unconvertible('The file is neither SubRip nor WebVTT: it holds no cue.')
  const before = lines.slice(0, first).findIndex((line) => line.trim() !== '' && !isNumber(line))
  if (before !== -1) throw unconvertible(`Line ${before + 1}: this is neither SubRip nor WebVTT.`)
  const cues = starts.map((start, index) => toCue(lines, start, starts[index + 1] ?? lines.length))
  return cues.filter((cue) => cue.lines.length > 0)
}

/** Whether a line with an arrow in it gives times; text may hold arrows too, but not behind a time. */
function isTiming(line: string, index: number): boolean {
  if (parseTiming(line) !== undefined) return true
  if (/^\s*-?\d+:[\d\s:.,]*-->/.test(line)) throw unconvertible(`Line ${index + 1}: these are no times.`)
  return false
}

function isNumber(line: string): boolean {
  return /^\s*\d+\s*$/.test(line)
}

function toCue(lines: readonly string[], start: number, next: number): Cue {
  const { startMs, endMs } = parseTiming(lines[start] ?? '') ?? { startMs: 0, endMs: 0 }
  if (endMs <= startMs) throw unconvertible(`Line ${start + 1}: the cue does not end after it begins.`)
  const text = lines.slice(start + 1, next)
  // The line before the times is the next cue's number, if it is one.
  if (next < lines.length && isNumber(text.at(-1) ?? '')) text.pop()
  return { startMs, endMs, lines: text.map(toText).filter((line) => line !== '') }
}

/** Bold, italics and underlines stay; colours, fonts and the placing of other players go. */
function toText(line: string): string {
  const bare = line
    .replaceAll(/\{\\[^{}]*\}|<\/?font\b[^<>]*>/gi, '')
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]/gu, ' ')
  return toCueText(bare, (tag) => /^<\/?[biu]>$/i.exec(tag)?.[0].toLowerCase()).trim()
}
