/** Captions as what they mean: which text is shown from when to when, and how that is written in WebVTT. */

/** One caption. */
export interface Cue {
  readonly startMs: number
  readonly endMs: number
  readonly id?: string
  /** Where it is shown, as WebVTT writes it. */
  readonly settings?: string
  /** Lines of cue text, as WebVTT writes it: none of them empty. */
  readonly lines: readonly string[]
}

const TIME = String.raw`(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})`
const timing = new RegExp(String.raw`^\s*${TIME}\s*-->\s*${TIME}(?:\s+(\S.*))?\s*$`, 's')

/** The times of a cue, and what stands behind them. */
export interface Timing extends Pick<Cue, 'startMs' | 'endMs'> {
  readonly rest: string
}

/** Reads a line such as `00:00:01,500 --> 00:00:04,000`, as SubRip or WebVTT write it; undefined for any other. */
export function parseTiming(line: string): Timing | undefined {
  const match = timing.exec(line)
  if (match === null) return undefined
  const [, ...parts] = match
  const startMs = toMs(parts.slice(0, 4))
  const endMs = toMs(parts.slice(4, 8))
  return startMs === undefined || endMs === undefined
    ? undefined
    : { startMs, endMs, rest: parts[8]?.trimEnd() ?? '' }
}

function toMs([hours = '0', minutes = '', seconds = '', fraction = '']: (string | undefined)[]):
  | number
  | undefined {
  if (Number(minutes) > 59 || Number(seconds) > 59) return undefined
  const wholeSeconds = (Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)
  return wholeSeconds * 1000 + Number(fraction.padEnd(3, '0'))
}

/** The lines of a text, however they end. */
export function toLines(text: string): string[] {
  return text.split(/\r\n|\n|\r/)
}

/** Writes cues as WebVTT, in the order they are shown; `blocks` are style sheets and regions, which come before them. */
export function renderWebvtt(cues: readonly Cue[], blocks: readonly (readonly string[])[] = []): string {
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

/** What a piece of markup is replaced with; undefined = it is text. */
export type ToMarkup = (tag: string) => string | undefined

const entity = /^&(#\d{1,7}|#x[\da-f]{1,6}|[a-z][a-z\d]{1,30});/i

/** Cue text in which nothing but the markup that `toMarkup` lets pass means more than itself. */
export function toCueText(line: string, toMarkup: ToMarkup): string {
  return line.replaceAll(/<[^<>]*>|[<>&]/g, (piece, offset: number) => {
    if (piece === '&') return entity.test(line.slice(offset, offset + 40)) ? piece : '&amp;'
    // An arrow would begin another cue; any other `>` means itself.
    const isArrow = line.slice(0, offset + piece.length).endsWith('-->')
    if (piece === '>') return isArrow ? '&gt;' : piece
    return (isArrow ? undefined : toMarkup(piece)) ?? escapeText(piece)
  })
}

const escapes: Readonly<Record<string, string>> = { '<': '&lt;', '>': '&gt;', '&': '&amp;' }

function escapeText(text: string): string {
  return text.replaceAll(/[<>&]/g, (character) => escapes[character] ?? character)
}
