/**
 * Tests, with generated captions, that conversion returns valid WebVTT with the same cues and without HTML.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { toWebvtt } from '../../src/conversion/captions.ts'
import { ConversionRejection } from '../../src/conversion/job.ts'

const time = fc.integer({ min: 0, max: 3_600_000 * 200 })
const words = fc.array(
  fc.constantFrom('a', 'é', '<i>', '</i>', '<script>', '&', '&lt;', '>', '<', '-->', '{\\an8}', '7'),
  {
    minLength: 1,
    maxLength: 6,
  },
)
const cue = fc.record({
  startMs: time,
  lengthMs: fc.integer({ min: 1, max: 60_000 }),
  lines: fc.array(
    words.map((parts) => parts.join(' ')),
    { minLength: 1, maxLength: 3 },
  ),
})

function toTime(ms: number): string {
  const pad = (value: number, digits = 2) => String(Math.floor(value)).padStart(digits, '0')
  return `${pad(ms / 3_600_000)}:${pad((ms / 60_000) % 60)}:${pad((ms / 1000) % 60)},${pad(ms % 1000, 3)}`
}

const subrip = fc
  .array(cue, { minLength: 1, maxLength: 8 })
  .map((cues) =>
    cues.map(({ startMs, lengthMs, lines }, index) =>
      [index + 1, `${toTime(startMs)} --> ${toTime(startMs + lengthMs)}`, ...lines, ''].join('\n'),
    ),
  )

/** Fragments of captions that the tests combine in any order. */
const pieces = fc.constantFrom(
  'WEBVTT',
  '\n',
  '\n\n',
  '00:00:01.000 --> 00:00:02.000',
  '00:00:01,000 --> 00:00:02,000',
  ' --> ',
  'NOTE',
  'STYLE',
  'REGION',
  '::cue {}',
  'align:start',
  '<v Ada>',
  '<script>',
  '<b',
  '&',
  'text',
  '1',
  '\r',
  '\u2028',
  '\ufeff',
)
const fragments = fc.array(pieces, { maxLength: 30 }).map((parts) => parts.join(''))
const webvttFragments = fragments.map((text) => `WEBVTT\n\n${text}`)

/** Returns the WebVTT that the server would serve, or undefined if it rejects the input. */
function convertForServing(text: string): string | undefined {
  try {
    return toWebvtt(Buffer.from(text)) ?? text
  } catch (error) {
    if (!(error instanceof ConversionRejection)) throw error
    return undefined
  }
}

const markup = /<\/?(?:c|i|b|u|ruby|rt|v|lang)(?:[.\s][^<>]*)?>/g

test('SubRip captions are converted to WebVTT with the same times, in order and without HTML', () => {
  fc.assert(
    fc.property(subrip, (blocks) => {
      const served = convertForServing(blocks.join('\n')) ?? ''
      const times = blocks.filter(hasText).map((block) => block.split('\n')[1]?.replaceAll(',', '.') ?? '')
      fc.pre(times.length > 0)
      const found = served.split('\n').filter((line) => line.includes('-->'))
      expect(found).toEqual(times.toSorted((one, other) => startOf(one) - startOf(other)))
      expect(served.replaceAll(markup, '')).not.toContain('<')
      expect(toWebvtt(Buffer.from(served))).toBeUndefined()
    }),
  )
})

/** Returns whether a cue has text in addition to position tags. The conversion omits cues without text. */
function hasText(block: string): boolean {
  const [, , ...lines] = block.split('\n')
  return lines.some((line) => line.replaceAll('{\\an8}', '').trim() !== '')
}

function startOf(line: string): number {
  const [hours = 0, minutes = 0, seconds = 0] = line.split(' ')[0]?.split(':').map(Number) ?? []
  return (hours * 60 + minutes) * 60 + seconds
}

test('converting captions a second time does not change them', () => {
  fc.assert(
    fc.property(fc.oneof(fragments, webvttFragments), (text) => {
      const served = convertForServing(text)
      if (served === undefined) return
      expect(toWebvtt(Buffer.from(served))).toBeUndefined()
      for (const block of served.split(/(?:\r\n|\n|\r){2,}/)) {
        if (block.includes('-->')) expect(block.replaceAll(markup, '')).not.toContain('<')
        expect(block.split('-->').length).toBeLessThanOrEqual(2)
      }
    }),
    { numRuns: 1000 },
  )
})

test('arbitrary bytes are either converted or rejected as captions, without other errors', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      convertForServing(Buffer.from(bytes).toString('latin1'))
      try {
        toWebvtt(bytes)
      } catch (error) {
        expect(error).toBeInstanceOf(ConversionRejection)
      }
    }),
    { numRuns: 500 },
  )
})
