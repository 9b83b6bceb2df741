/**
 * Tests, with generated event streams, that EventReader returns the same data as a standard parser, and that
 * events forwarded without parsing need no changes.
 */

import { createParser } from 'eventsource-parser'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ChunkNormalizer } from '../../src/chat/answers/normalize-chunks.ts'
import { AnswerCounter } from '../../src/chat/output-limit.ts'
import {
  countPlainBytes,
  dataOf,
  EventReader,
  encodeEvent,
  plainEnd,
  splitRun,
} from '../../src/chat/sse-reader.ts'
import { answerOptions, readClientBytes, splitAt, splitPositions } from '../support/client-streams.ts'

const line = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: 'grapheme', maxLength: 12 }).map((text) => `data: ${text}`) },
  fc.constantFrom(
    'data:',
    'data:tight',
    'data:  two spaces',
    ': comment',
    'event: named',
    'id: 7',
    'unknown: x',
  ),
  { weight: 4, arbitrary: fc.constant('') },
)
const stream = fc
  .array(fc.tuple(line, fc.constantFrom('\n', '\n', '\r\n', '\r')), { maxLength: 30 })
  .map((lines) => Buffer.from(lines.map(([text, end]) => text.replace(/[\r\n]/g, '') + end).join('')))

function readData(reads: readonly Buffer[]): string[] {
  const reader = new EventReader()
  const runs = reads.map((read) => reader.push(read)).filter((run) => run !== undefined)
  return runs.flatMap((run) => [...splitRun(run)].map(dataOf)).filter((data) => data !== undefined)
}

function readDataWithParser(bytes: Buffer): string[] {
  const found: string[] = []
  createParser({ onEvent: ({ data }) => found.push(data) }).feed(bytes.toString())
  return found
}

/** Returns whether the event reader forwards all of these bytes without parsing them. */
function isPlain(run: Buffer): boolean {
  return plainEnd(run.toString('latin1'), 0) === run.length
}

describe('the data of an event stream', () => {
  test('equals the output of a standard parser, regardless of how the stream is split', () => {
    fc.assert(
      fc.property(stream, splitPositions, (bytes, shares) => {
        expect(readData(splitAt(bytes, shares))).toEqual(readDataWithParser(bytes))
      }),
      { numRuns: 500 },
    )
  })

  test.each([
    ['three line endings between events', 'data: a\n\n\ndata: b\n\n'],
    ['three line endings at the end of a read', 'data: a\n\n\n'],
    ['only line endings', '\n\n\n'],
    ['CRLF line endings', 'data: a\r\n\r\ndata: b\r\n\r\n'],
    ['CR line endings', 'data: a\r\rdata: b\r\r'],
    ['an event of two lines', 'data: a\ndata: b\n\n'],
    ['an unfinished event', 'data: a\n\ndata: b\n'],
    ['a byte order mark', '\ufeffdata: a\n\ndata: \ufeffb\n\n'],
  ])('equals the output of a standard parser for a stream with %s, split at any byte', (_what, text) => {
    const bytes = Buffer.from(text)
    for (let place = 0; place <= bytes.length; place++) {
      const reads = [bytes.subarray(0, place), bytes.subarray(place)]
      expect(readData(reads)).toEqual(readDataWithParser(bytes))
    }
  })
})

describe('an event stream is rejected if it has', () => {
  const push = (size: number, text: string, times: number) => () => {
    const reader = new EventReader()
    for (let count = 0; count < times; count++) reader.push(Buffer.from(text.repeat(size)))
  }

  test('an event of more than 1 MiB', () => {
    expect(push(65_536, 'x', 16)).not.toThrow()
    expect(push(65_536, 'x', 17)).toThrow(expect.objectContaining({ kind: 'protocol' }))
  })

  test('more than 16 MiB in total', () => {
    expect(push(8_192, 'data: \n\n', 256)).not.toThrow()
    expect(push(8_192, 'data: \n\n', 257)).toThrow(expect.objectContaining({ kind: 'protocol' }))
  })
})

const names = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'm' }
const text = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom('', '"', '\\', '\u2028', '"choices":[{', '\\"'),
)
const mostly = <Value>(usual: Value, ...others: fc.Arbitrary<unknown>[]) =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(usual as unknown) }, ...others)
const call = fc.record(
  {
    index: fc.nat(1),
    id: text,
    type: fc.constant('function'),
    function: fc.record({ name: text, arguments: text }),
  },
  { requiredKeys: [] },
)
const delta = fc.record(
  {
    content: fc.oneof(
      { weight: 4, arbitrary: text as fc.Arbitrary<unknown> },
      fc.constantFrom(null, 5, ['a']),
    ),
    ...{
      role: fc.constantFrom('assistant', 'model', null),
      reasoning_content: text,
      tool_calls: fc.array(call),
    },
  },
  { requiredKeys: [] },
)
const onlyText = fc.record({ content: text })
const choice = fc.record(
  {
    index: fc.nat(2),
    delta: fc.oneof({ weight: 3, arbitrary: onlyText as fc.Arbitrary<unknown> }, delta),
    logprobs: mostly(null, fc.constant({ content: [] })),
    finish_reason: mostly(null, fc.constantFrom('', 'stop', 'tool_calls')),
  },
  { requiredKeys: ['delta', 'index'] },
)
const chunk = fc.record(
  {
    choices: fc.oneof(
      { weight: 5, arbitrary: choice.map((one) => [one]) },
      fc.array(choice, { maxLength: 2 }),
    ),
    usage: mostly(null, fc.constant({ prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 })),
    error: mostly(null, fc.constant({ message: 'no' })),
    system_fingerprint: text,
    extra: fc.jsonValue(),
  },
  { requiredKeys: ['choices'] },
)
const usualChoice = fc.record(
  { index: fc.nat(2), delta: onlyText, logprobs: fc.constant(null), finish_reason: fc.constant(null) },
  { requiredKeys: ['index', 'delta'] },
)
const usualChunk = fc.record(
  { choices: fc.tuple(usualChoice), usage: fc.constant(null) },
  { requiredKeys: ['choices'] },
)
const event = fc
  .tuple(fc.oneof(chunk, usualChunk), fc.boolean(), fc.boolean())
  .map(([fields, isTight, isSpaced]) => {
    const json = JSON.stringify({ ...names, ...fields })
    const spaced = json.replace(/("(?:[^"\\]|\\.)*")|([,:])/g, (_all, whole, mark) => whole ?? `${mark} `)
    return `data:${isTight ? '' : ' '}${isSpaced ? spaced : json}\n\n`
  })

/** Creates a normalizer for a response whose three choices have already started. */
function createNormalizer(): ChunkNormalizer {
  const normalizer = new ChunkNormalizer(answerOptions({ choices: 3 }))
  for (const index of [0, 1, 2])
    normalizer.take({ ...names, choices: [{ index, delta: { role: 'assistant' } }] })
  return normalizer
}

describe('a sequence of events that is forwarded without parsing', () => {
  test('never contains anything that the normalizer would change', () => {
    let plainCount = 0
    fc.assert(
      fc.property(event, (written) => {
        if (!isPlain(Buffer.from(written))) return
        plainCount += 1
        const sent = JSON.parse(dataOf(Buffer.from(written)) as string)
        expect(createNormalizer().take(sent)).toEqual([sent])
        expect(createNormalizer().take(sent)[0]).toBe(sent)
      }),
      { numRuns: 3_000 },
    )
    expect(plainCount).toBeGreaterThan(100)
  })

  test('is counted as the bytes of its texts', () => {
    const said = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('\\', '"', '\n"\\'))
    const texts = fc.array(
      fc.tuple(said, fc.constantFrom(1, 1, 1, 300), fc.constantFrom('content', 'content', 'reasoning')),
    )
    const isEscaped = fc.boolean()
    fc.assert(
      fc.property(texts, isEscaped, isEscaped, (written, escapesAll, isSpaced) => {
        const run = written
          .map(([content, length, field]) => {
            const json = JSON.stringify({
              ...{ ...names, id: 'x'.repeat(length) },
              choices: [{ index: 0, delta: { [field]: content }, finish_reason: null }],
            })
            const shown = escapesAll
              ? json.replace(
                  /[\u0080-\uffff]/g,
                  (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
                )
              : json
            return `data: ${isSpaced ? shown.replace('"delta":{"content":', '"delta": {"content": ') : shown}\n\n`
          })
          .join('')
        const counter = new AnswerCounter()
        for (const piece of splitRun(Buffer.from(run)))
          counter.add(JSON.parse(dataOf(piece) as string), 'delta')
        const text = Buffer.from(run).toString('latin1')
        expect(countPlainBytes(text, 0, text.length)).toBe(counter.textBytes)
      }),
      { numRuns: 2_000 },
    )
  })

  test('is counted completely if the events have different lengths', () => {
    const toEvent = (id: string) =>
      encodeEvent({
        ...{ ...names, id },
        choices: [{ index: 0, delta: { content: 'four' }, finish_reason: null }],
      })
    const short = toEvent('')
    // The text of the first event is as far from its start as that of the third from the second one's.
    const run = Buffer.concat([toEvent('x'.repeat(short.length)), short, short, short])
    expect(countPlainBytes(run.toString('latin1'), 0, run.length)).toBe(16)
  })

  test('never contains invalid JSON', () => {
    const written = fc.tuple(
      onlyText,
      fc.nat(),
      fc.constantFrom('', '"', '\\', '{', '}', ',', '\t', '\n', ':', '0'),
    )
    fc.assert(
      fc.property(written, ([delta, place, typo]) => {
        const whole = encodeEvent({
          ...names,
          choices: [{ index: 0, delta, finish_reason: null }],
        }).toString()
        const at = place % whole.length
        const broken = Buffer.from(whole.slice(0, at) + typo + whole.slice(at + 1))
        if (!isPlain(broken)) return
        const data = [...splitRun(broken)].map(dataOf) as string[]
        for (const json of data) expect(createNormalizer().take(JSON.parse(json))).toHaveLength(1)
      }),
      { numRuns: 2_000 },
    )
  })

  const choices =
    '"choices":[{"index":0,"delta":{"content":"w\\"o\\u00f6rd"},"logprobs":null,"finish_reason":null}]'
  test.each([
    [
      'OpenAI',
      `{"id":"a","object":"b","created":1,"model":"m","system_fingerprint":null,${choices},"usage":null}`,
    ],
    [
      'vLLM',
      `{"id":"a","object":"b","created":1,"model":"m",${choices.replace('}]', ',"token_ids":null}]')}}`,
    ],
    ['a reasoning model', `{"id":"a","model":"m",${choices.replace('"content"', '"reasoning_content"')}}`],
    [
      "Python's json module",
      `{"id": "a", "created": 1, ${choices.replaceAll(':', ': ').replaceAll(',', ', ')}}`,
    ],
  ])('may have the format of %s', (_who, json) => {
    expect(isPlain(Buffer.from(`data: ${json}\n\n`.repeat(3)))).toBe(true)
    expect(isPlain(Buffer.from(`data: ${json}\n\ndata: [DONE]\n\n`))).toBe(false)
  })

  test('may contain a very long event', () => {
    const content = '\\"'.repeat(300_000)
    const long = encodeEvent({ ...names, choices: [{ index: 0, delta: { content }, finish_reason: null }] })
    expect(isPlain(long)).toBe(true)
  })
})

test('the stream to the client does not depend on the chunk boundaries of the provider stream', async () => {
  const fault = fc.constantFrom('data: {"broken\n\n', 'data: {"error":{"message":"no"}}\n\n', 'data: {}\n\n')
  const noise = fc.constantFrom(': ping\n\n', '\n', 'event: named\n', 'data: [DONE]\n\n')
  const events = fc.array(
    fc.oneof({ weight: 12, arbitrary: event }, { weight: 3, arbitrary: noise }, fault),
    {
      maxLength: 12,
    },
  )
  const begin = (index: number) =>
    encodeEvent({ ...names, choices: [{ index, delta: { role: 'assistant' }, finish_reason: null }] })
  await fc.assert(
    fc.asyncProperty(events, splitPositions, async (written, shares) => {
      const bytes = Buffer.concat([...[0, 1, 2].map(begin), Buffer.from(written.join(''))])
      const whole = await readClientBytes([bytes], answerOptions({ choices: 3 }))
      const cut = await readClientBytes(splitAt(bytes, shares), answerOptions({ choices: 3 }))
      expect(cut.bytes.toString()).toBe(whole.bytes.toString())
      expect(String(cut.failure)).toBe(String(whole.failure))
    }),
    { numRuns: 500 },
  )
})
