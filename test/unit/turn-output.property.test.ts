/**
 * Tests, with generated events, that the items of a turn are the same whether its events are parsed one by
 * one or in runs.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { callsOf, partsOf } from '../../src/conversations/chat-piece.ts'
import { Output } from '../../src/conversations/output.ts'
import { createItemIds, pieceOf, renderOutput } from '../../src/conversations/turn-output.ts'
import { encodeSegment, type LogEntry, toRun } from '../../src/conversations/turns/segments.ts'

const text = fc.oneof(
  fc.constantFrom(
    '',
    ' word',
    '"',
    '\\',
    'a"},"finish_reason":null}]}',
    'é',
    '😀',
    '\ud83d',
    '\ude00',
    '\n\n',
  ),
  fc.string({ unit: 'binary', maxLength: 8 }),
)

function encode(choice: object, extra: object = {}): Buffer {
  const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm' }
  return Buffer.from(`data: ${JSON.stringify({ ...head, choices: [choice], ...extra })}\n\n`)
}

const delta = fc.oneof(
  { weight: 6, arbitrary: text.map((content) => ({ content })) },
  text.map((content) => ({ content, role: 'assistant' })),
  text.map((content) => ({ content, reasoning: 'hm' })),
  text.map((reasoning_content) => ({ reasoning_content })),
  text.map((reasoning) => ({ reasoning })),
  text.map((refusal) => ({ refusal })),
  fc.nat(1).map((index) => ({
    tool_calls: [{ index, id: `call_${index}`, function: { name: 'f', arguments: '{"a":' } }],
  })),
)
const chat = fc
  .tuple(
    delta,
    fc.constantFrom({}, { logprobs: null }, { logprobs: { content: [{ token: 'a', logprob: -1 }] } }),
    fc.constantFrom(null, null, null, null, 'stop', 'length'),
    fc.constantFrom(
      {},
      {},
      { usage: null },
      { usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 } },
    ),
  )
  .map(([change, more, finish_reason, extra]) => [
    encode({ index: 0, delta: change, ...more, finish_reason }, extra),
  ])
/** Two events between which a provider has split the bytes of a character. */
const split = fc.constantFrom('é', '€', '😀').chain((character) => {
  const bytes = Buffer.from(character)
  return fc.integer({ min: 1, max: bytes.length - 1 }).map((at) => {
    const whole = encode({ index: 0, delta: { content: '#' }, finish_reason: null })
    const hash = whole.indexOf('#')
    const withText = (part: Buffer) =>
      Buffer.concat([whole.subarray(0, hash), part, whole.subarray(hash + 1)])
    return [withText(bytes.subarray(0, at)), withText(bytes.subarray(at))]
  })
})
const repeated = fc
  .tuple(chat, fc.nat(4))
  .map(([events, times]) => Array.from({ length: times }, () => events).flat())
const entries: fc.Arbitrary<LogEntry[]> = fc
  .array(
    fc.oneof(
      fc
        .oneof(chat, repeated, split)
        .map((events) => events.map((bytes): LogEntry => ({ kind: 'chat', bytes }))),
      fc.constant([{ kind: 'step' as const, bytes: Buffer.from('{"type":"ended","at":7}') }]),
    ),
    { maxLength: 25 },
  )
  .map((groups) => groups.flat())

/** Returns the items that result from parsing each event separately, and the finish reason. */
function renderPlain(turnId: string, list: readonly LogEntry[]) {
  const output = new Output(createItemIds(turnId), () => {})
  let finish: string | undefined
  for (const entry of list) {
    const choice = pieceOf(entry)?.choices[0]
    if (choice === undefined) continue
    for (const part of partsOf(choice)) output.addPart(part)
    for (const call of callsOf(choice)) output.addCall(call)
    finish = choice.finish_reason ?? finish
  }
  const isCutOff = finish === undefined || finish === 'length'
  if (!isCutOff || output.items.length > 0) output.close(isCutOff)
  return { bodies: output.items, finish }
}

test('a turn has the same items as if each of its events were parsed separately', () => {
  fc.assert(
    fc.property(entries, fc.nat(25), (list, cut) => {
      const segments = [list.slice(0, cut), list.slice(cut)].map((part) => encodeSegment(part.map(toRun)))
      const { items, finish, count } = renderOutput('turn_a', segments)
      expect({ bodies: items.map(({ body }) => body), finish }).toEqual(renderPlain('turn_a', list))
      expect(count).toBe(list.length)
    }),
    { numRuns: 500 },
  )
})
