/**
 * Tests, with generated events, that stored runs of events decode to the same bytes, and that event ids count
 * the events.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseEventId, toChatStream } from '../../src/conversations/events.ts'
import {
  decodeSegment,
  encodeSegment,
  entriesOf,
  type LogEntry,
  type LogRun,
  toChatRun,
  toRun,
} from '../../src/conversations/turns/segments.ts'

const kind = fc.constantFrom('chat', 'completion', 'failure', 'step')
/**
 * Uses few different byte values, so that neighboring entries share long runs, which often overlap
 * themselves.
 */
const alike = fc.array(fc.constantFrom(0, 10, 97, 255), { maxLength: 400 }).map((bytes) => Buffer.from(bytes))
const any = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes))
const entry: fc.Arbitrary<LogEntry> = fc.record({ kind, bytes: fc.oneof(alike, any) })
const entries = fc.array(entry, { maxLength: 20 })

const event = fc.string({ maxLength: 30 }).map((text) => `data: ${JSON.stringify(text)}\n\n`)
const events = fc.array(event, { maxLength: 20 })
const capability = 'a'.repeat(22)

/** Yields a log of these events in batches of `size`, each after a server-side step. */
async function* toLog(texts: readonly string[], size = 1): AsyncGenerator<LogRun[], void, void> {
  const step = toRun({ kind: 'step', bytes: Buffer.from('{"type":"tool_call"}') })
  for (let at = 0; at < texts.length; at += size)
    yield [step, toChatRun(Buffer.from(texts.slice(at, at + size).join('')))]
}

function encode(list: readonly LogEntry[]): Uint8Array {
  return encodeSegment(list.map(toRun))
}

function decode(segment: Uint8Array): LogEntry[] {
  return decodeSegment(segment).flatMap((run) => [...entriesOf(run)])
}

async function readStream(texts: readonly string[], after: number): Promise<string[]> {
  const sent: string[] = []
  for await (const text of toChatStream(toLog(texts), { capability, after }))
    sent.push(Buffer.from(text, 'latin1').toString())
  return sent
}

describe('a segment of log entries', () => {
  test('contains the same entries after encoding and decoding', () => {
    fc.assert(
      fc.property(entries, (list) => {
        expect(decode(encode(list))).toEqual(list)
      }),
    )
  })

  test('can be decoded from a view of a larger buffer', () => {
    fc.assert(
      fc.property(entries, fc.nat(9), (list, offset) => {
        const larger = Buffer.concat([Buffer.alloc(offset, 1), encode(list), Buffer.alloc(3, 2)])
        const view = new Uint8Array(larger.buffer, larger.byteOffset + offset, larger.length - offset - 3)
        expect(decode(view)).toEqual(list)
      }),
    )
  })

  test('can contain entries longer than 65,535 bytes', () => {
    const long = Buffer.alloc(70_000, 'x')
    const list: LogEntry[] = [
      { kind: 'chat', bytes: long },
      { kind: 'chat', bytes: Buffer.concat([long, Buffer.from('y'), long]) },
      { kind: 'step', bytes: Buffer.alloc(0) },
    ]
    expect(decode(encode(list))).toEqual(list)
  })

  test('grows by at most 10 bytes for each repetition of an event', () => {
    const one: LogEntry = { kind: 'chat', bytes: Buffer.alloc(5_000, 'abc') }
    const growth = encode([one, one, one]).length - encode([one]).length
    expect(growth).toBeLessThanOrEqual(20)
  })
})

describe('a stream of events', () => {
  test('numbers its events from 0 without gaps, ignoring server-side steps', async () => {
    await fc.assert(
      fc.asyncProperty(events, async (texts) => {
        expect(await readStream(texts, -1)).toEqual([
          ...texts.map((text, number) => `id: ${capability}.${number}\n${text}`),
          'data: [DONE]\n\n',
        ])
      }),
    )
  })

  test('can be resumed after any event with the same bytes', async () => {
    await fc.assert(
      fc.asyncProperty(events, async (texts) => {
        const whole = await readStream(texts, -1)
        for (const number of texts.keys())
          expect(await readStream(texts, number)).toEqual(whole.slice(number + 1))
      }),
    )
  })

  test('cannot be resumed after an event that it does not contain', async () => {
    await fc.assert(
      fc.asyncProperty(events, fc.nat(5), async (texts, beyond) => {
        const refused = await readStream(texts, texts.length + beyond).catch(({ code }) => code)
        expect(refused).toBe('event_not_kept')
      }),
    )
  })

  test('can be split into its original events', () => {
    fc.assert(
      fc.property(events, (texts) => {
        const run = toChatRun(Buffer.from(texts.join('')))
        expect([...entriesOf(run)].map(({ bytes }) => String(bytes))).toEqual(texts)
      }),
    )
  })
})

describe('an event id', () => {
  const capabilities = fc.stringMatching(/^[0-9A-Za-z]{22}$/)

  test('is parsed into its capability and number', () => {
    fc.assert(
      fc.property(capabilities, fc.nat(999_999_999), (name, number) => {
        expect(parseEventId(`${name}.${number}`)).toEqual({ capability: name, number })
      }),
    )
  })

  test('has only one valid spelling', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'aZ09.-+ \n'), maxLength: 30 }), (text) => {
        const id = parseEventId(text)
        if (id !== undefined) expect(`${id.capability}.${id.number}`).toBe(text)
      }),
    )
  })
})
