/** Tests that captions are converted to safe WebVTT and that valid WebVTT is not changed. */
import { describe, expect, test, vi } from 'vitest'
import { toWebvtt } from '../../src/conversion/captions.ts'
import { ConversionRejection } from '../../src/conversion/job.ts'

// Converting megabytes of captions may take longer than the default timeout on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

/** Returns the converted WebVTT, `unchanged`, or the reason for a rejection. */
function convert(content: string | Uint8Array): string {
  try {
    return toWebvtt(Buffer.from(content as string)) ?? 'unchanged'
  } catch (error) {
    if (!(error instanceof ConversionRejection)) throw error
    return `${error.verdict}: ${error.message}`
  }
}

const srt = '1\n00:00:01,000 --> 00:00:02,500\nHello\n\n2\n00:00:03,000 --> 00:00:04,000\nthere\n'
const vtt = 'WEBVTT\n\n00:00:01.000 --> 00:00:02.500\nHello\n\n00:00:03.000 --> 00:00:04.000\nthere\n'

describe('a SubRip file', () => {
  const one = (text: string) => `1\n00:00:01,000 --> 00:00:02,000\n${text}\n`
  const textOf = (content: string) => convert(content).split('\n').slice(3).join('\n').trimEnd()

  test.each([
    ['Windows line endings', srt.replaceAll('\n', '\r\n')],
    ['classic Mac OS line endings', srt.replaceAll('\n', '\r')],
    ['no numbers', srt.replaceAll(/^\d\n/gm, '')],
    ['no empty line at the end and several in between', srt.trimEnd().replace('\n\n', '\n\n\n \n\n')],
    ['no empty line between cues', srt.replace('\n\n', '\n')],
    [
      'decimal points, short fractions and short hours',
      srt.replaceAll(',', '.').replaceAll('00:00:0', '0:0:'),
    ],
    [
      'no spaces around the arrow and coordinates after it',
      srt.replace(' --> 00:00:02,500', '-->00:00:02,500 X1:1 X2:9'),
    ],
    [
      'unordered cues',
      `${srt.slice(srt.indexOf('2\n00:00:03'))}\n${srt.slice(0, srt.indexOf('2\n00:00:03'))}`,
    ],
    ['leading empty lines', `\n\n${srt}`],
  ])('with %s is converted to WebVTT', (_what, content) => {
    expect(convert(content)).toBe(vtt)
  })

  test.each([
    ['<b>a</b> <I>b</I> <u>c</u>', '<b>a</b> <i>b</i> <u>c</u>'],
    ['<font color="#ff0000">red</font> {\\an8}top', 'red top'],
    ['<script>alert(1)</script>', '&lt;script&gt;alert(1)&lt;/script&gt;'],
    ['<img src=x onerror=alert(1)>', '&lt;img src=x onerror=alert(1)&gt;'],
    ['<b onclick="alert(1)">a</b>', '&lt;b onclick="alert(1)"&gt;a</b>'],
    ['<scr<font>ipt>alert(1)', '&lt;script&gt;alert(1)'],
    ['AT&T &amp; a < b', 'AT&amp;T &amp; a &lt; b'],
    ['a > b', 'a > b'],
    ['7 --> 9', '7 --&gt; 9'],
    ['there --> here', 'there --&gt; here'],
    ['one\n\ntwo', 'one\ntwo'],
    ['3', '3'],
  ])('with the text %j is converted to safe WebVTT', (text, shown) => {
    expect(textOf(one(text))).toBe(shown)
  })

  test.each([
    ['', /neither SubRip nor WebVTT: it contains no cues/],
    ['Dear diary,\n\ntoday', /contains no cues/],
    ['{"a":1}', /contains no cues/],
    ['Dear diary\n\n00:00:01,000 --> 00:00:02,000\na', /^unconvertible: Line 1: this is neither/],
    ['1\n00:00:02,000 --> 00:00:01,000\na\n', /Line 2: the cue must end after it starts/],
    ['1\n00:00:01,000 --> 00:00:01,000\na\n', /Line 2: the cue must end after it starts/],
    ['1\n00:60:01,000 --> 00:61:01,000\na\n', /Line 2: the times are invalid/],
    [`${one('a')}\n2\n00:00:03 --> 00:00:04\nb\n`, /Line 6: the times are invalid/],
    ['1\n00:00:01,000 --> 00:00:02,000\n\n', /contain no text/],
  ])('is rejected, and the error explains why: %j', (content, sentence) => {
    expect(convert(content)).toMatch(/^unconvertible: /)
    expect(convert(content)).toMatch(sentence)
  })
})

describe('a WebVTT file', () => {
  test.each([
    ['only its signature', 'WEBVTT'],
    [
      'a title, a header and comments',
      `WEBVTT - Title\nKind: captions\n\nNOTE\nnot shown\n\n${vtt.slice(8)}`,
    ],
    ['a byte order mark', `\ufeff${vtt}`],
    ['Windows line endings', vtt.replaceAll('\n', '\r\n')],
    [
      'cue names, positions, voices and rubies',
      'WEBVTT\n\nintro\n00:01.000 --> 00:02.000 align:start line:-1 position:10%,line-left\n<v.loud Ada>Hi <i.x>a</i> <ruby>b<rt>c</rt></ruby> <00:01.500>d &amp; e > f\n',
    ],
    [
      'style sheets and regions',
      `WEBVTT\n\nSTYLE\n::cue { color: red }\n\nREGION\nid:a\nwidth:40%\n\n${vtt.slice(8)}`,
    ],
  ])('with %s is not changed', (_what, content) => {
    expect(convert(content)).toBe('unchanged')
  })

  const cue = '00:00:01.000 --> 00:00:02.000'
  test.each([
    [
      'HTML',
      `WEBVTT\n\n${cue}\n<img src=x onerror=alert(1)> <i>a</i>\n`,
      `WEBVTT\n\n${cue}\n&lt;img src=x onerror=alert(1)&gt; <i>a</i>\n`,
    ],
    ['an unclosed voice tag', `WEBVTT\n\n${cue}\n<v Ada-->a\n`, `WEBVTT\n\n${cue}\n&lt;v Ada--&gt;a\n`],
    ['a cue named NOTE', `WEBVTT\n\nNOTE\n${cue}\n<script>\n`, `WEBVTT\n\nNOTE\n${cue}\n&lt;script&gt;\n`],
    ['markup in a cue name', `WEBVTT\n\n<b>a\n${cue}\na\n`, `WEBVTT\n\n${cue}\na\n`],
    ['a cue in a comment', `WEBVTT\n\nNOTE a\nb\n${cue}\n<script>\n\n${cue}\na\n`, `WEBVTT\n\n${cue}\na\n`],
    [
      'a style sheet that loads a URL',
      `WEBVTT\n\nSTYLE\n::cue { background: url(http://a.test) }\n\n${cue}\na\n`,
      `WEBVTT\n\n${cue}\na\n`,
    ],
    [
      'unordered cues with commas',
      `WEBVTT\n\n00:03,000 --> 00:04,000\nb\n\n${cue}\na\n`,
      `WEBVTT\n\n${cue}\na\n\n00:00:03.000 --> 00:00:04.000\nb\n`,
    ],
    [
      'unknown cue settings',
      `WEBVTT\n\n${cue} align:start onclick:x=1\na\n`,
      `WEBVTT\n\n${cue} align:start\na\n`,
    ],
  ])('with %s is repaired', (_what, content, repaired) => {
    expect(convert(content)).toBe(repaired)
    expect(convert(repaired)).toBe('unchanged')
  })

  test.each([
    [`WEBVTT\n${cue}\na`, /Line 2: an empty line is missing before the first cue/],
    ['WEBVTT\n\n00:02.000 --> 00:01.000\na', /Line 3: the cue must end after it starts/],
    ['WEBVTT\n\na\nb\nc', /Line 4: a cue must start with its times/],
    ['WEBVTT\n\n00:aa --> 00:bb\na', /Line 3: a cue must start with its times/],
  ])('is rejected, and the error explains why: %j', (content, sentence) => {
    expect(convert(content)).toMatch(sentence)
  })
})

test.each([
  ['unclosed position tags', '{\\'.repeat(1_000_000)],
  ['unclosed tags', '<font '.repeat(300_000)],
  ['spaces', `x${' '.repeat(2_000_000)}\u2028x`],
  ['one long word', '&a'.repeat(500_000)],
])('captions with megabytes of %s are converted within the time limit of the test', (_what, text) => {
  const times = '00:00:01.000 --> 00:00:02.000'
  for (const content of [`1\n${times} ${text}\n${text}\n`, `WEBVTT\n\n${times} ${text}\n${text}\n`])
    expect(convert(content)).toMatch(/^WEBVTT/)
})

describe('the encoding of captions', () => {
  const umlauts = srt.replace('Hello', 'Grüße, Ærø – “ça va”')
  const shown = vtt.replace('Hello', 'Grüße, Ærø – “ça va”')
  const swap = (text: string) => Buffer.from(text, 'utf16le').swap16()
  const western = Buffer.from(
    umlauts.replace('–', '\x96').replace('“', '\x93').replace('”', '\x94'),
    'latin1',
  )

  test.each([
    ['UTF-8', Buffer.from(umlauts)],
    ['UTF-8 with a byte order mark', Buffer.from(`\ufeff${umlauts}`)],
    ['UTF-16', Buffer.from(`\ufeff${umlauts}`, 'utf16le')],
    ['big-endian UTF-16', swap(`\ufeff${umlauts}`)],
    ['UTF-16 without a byte order mark', Buffer.from(umlauts, 'utf16le')],
    ['big-endian UTF-16 without a byte order mark', swap(umlauts)],
    ['Windows-1252', western],
  ])('is detected if it is %s', (_what, bytes) => {
    expect(convert(bytes)).toBe(shown)
  })

  test('is UTF-8 after UTF-16 WebVTT is converted', () => {
    expect(convert(Buffer.from(`\ufeff${shown}`, 'utf16le'))).toBe(shown)
  })

  test.each([
    [
      'is unknown',
      Buffer.from([...Buffer.from(srt), 0xcf, 0xf0, 0xe8, 0xe2, 0xe5, 0xf2, 0xef, 0xf0, 0xe8, 0xe2, 0xe5]),
      /save the file as UTF-8/,
    ],
    [
      'is UTF-16 with half a surrogate pair',
      Buffer.concat([Buffer.from(`\ufeff${srt}`, 'utf16le'), Buffer.from([0x00, 0xd8])]),
      /neither UTF-8 nor UTF-16/,
    ],
    ['is UTF-8 with a NUL character', Buffer.from(`${srt}\0`), /is not a text file/],
  ])('is rejected if it %s', (_what, bytes, sentence) => {
    expect(convert(bytes)).toMatch(sentence)
  })
})
