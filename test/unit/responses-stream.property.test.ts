/** Tests, with generated chat streams, that the resulting Responses API events are valid. */
import fc from 'fast-check'
import { ResponseStream as OfficialStream } from 'openai/lib/responses/ResponseStream'
import { expect, test } from 'vitest'
import { encodeEvent } from '../../src/chat/sse-reader.ts'
import { ResponseEvent } from '../../src/conversations/response-schema.ts'
import { ResponseStream } from '../../src/responses/responses.ts'
import { ResponsesRequest } from '../../src/responses/schema.ts'
import { clientChunksOf, splitAt, splitPositions } from '../support/client-streams.ts'
import { createFakeClock } from '../support/fake-clock.ts'
import { type AnyEvent, readResponseEvents } from '../support/responses.ts'

const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 6 }),
  fc.constantFrom('', '\n\n', 'data: x', '\u2028'),
)
const call = fc.nat(2).chain((index) =>
  fc.record({
    index: fc.constant(index),
    id: fc.constantFrom(`given_${index}`, undefined),
    type: fc.constantFrom('function', undefined),
    function: fc.record({ name: fc.constantFrom('f', 'g', undefined), arguments: text }),
  }),
)
const delta = fc.oneof(
  { weight: 3, arbitrary: fc.record({ content: text }) },
  { weight: 2, arbitrary: fc.record({ reasoning_content: text }) },
  { weight: 2, arbitrary: fc.record({ tool_calls: fc.array(call, { minLength: 1, maxLength: 2 }) }) },
  fc.record({ refusal: text }),
  fc.record({ reasoning: text, content: text, refusal: text, tool_calls: fc.array(call, { maxLength: 2 }) }),
)
const names = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm' }
const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 }
/** Generates the chunks of a chat stream, including its finish reason and usage. */
const chunks = fc
  .tuple(
    fc.array(delta, { maxLength: 12 }),
    fc.constantFrom('stop', 'tool_calls', 'length', 'content_filter'),
  )
  .map(([deltas, finish_reason]) => [
    ...deltas.map((each) => ({ ...names, choices: [{ index: 0, delta: each, finish_reason: null }] })),
    { ...names, choices: [{ index: 0, delta: {}, finish_reason }] },
    { ...names, choices: [], usage },
  ])

/** Returns the Responses API events for a chat stream that arrives in these reads. */
async function eventsOf(reads: readonly Uint8Array[]): Promise<AnyEvent[]> {
  const random = (count: number) => Buffer.alloc(count, ++ids)
  let ids = 0
  const request = ResponsesRequest.parse({ input: 'x' })
  const stream = new ResponseStream({ clock: createFakeClock(1), random }, request)
  const sent: Uint8Array[] = []
  for await (const bytes of stream.read(clientChunksOf(reads))) sent.push(bytes)
  return readResponseEvents(Buffer.concat(sent).toString())
}

const encode = (stream: readonly object[]) => Buffer.concat(stream.map(encodeEvent))

test('the Responses API events do not depend on the chunk boundaries of the chat stream', async () => {
  await fc.assert(
    fc.asyncProperty(chunks, splitPositions, async (stream, shares) => {
      const bytes = encode(stream)
      expect(await eventsOf(splitAt(bytes, shares))).toEqual(await eventsOf([bytes]))
    }),
    { numRuns: 200 },
  )
})

test('every Responses API event is valid, and the events of each output item match the item', async () => {
  await fc.assert(
    fc.asyncProperty(chunks, async (stream) => {
      const events = await eventsOf([encode(stream)])
      for (const event of events) ResponseEvent.parse(event)
      const output = events.at(-1)?.response.output as AnyEvent[]
      for (const [index, item] of output.entries()) {
        const own = events.filter(({ output_index }) => output_index === index)
        expect(own.at(0)?.type).toBe('response.output_item.added')
        expect(own.at(-1)).toMatchObject({ type: 'response.output_item.done', item })
        const deltas = own.filter(({ type }) => type.endsWith('.delta')).map((event) => event.delta)
        const parts = item.content?.map((part: AnyEvent) => part.text ?? part.refusal) ?? [item.arguments]
        expect(deltas.join('')).toBe(parts.join(''))
      }
    }),
    { numRuns: 200 },
  )
})

test('the official client assembles the same response from the Responses API events', async () => {
  await fc.assert(
    fc.asyncProperty(chunks, async (stream) => {
      const events = await eventsOf([encode(stream)])
      const lines = events.map((event) => `${JSON.stringify(event)}\n`).join('')
      const followed = await OfficialStream.fromReadableStream(new Blob([lines]).stream()).finalResponse()
      expect(followed).toMatchObject(events.at(-1)?.response)
      // The client must assemble the same output without the last event.
      const [, ...before] = lines.trimEnd().split('\n').reverse()
      const rest = `${before.reverse().join('\n')}\n`
      const { output } = await OfficialStream.fromReadableStream(new Blob([rest]).stream()).finalResponse()
      expect(output).toMatchObject(events.at(-1)?.response.output)
    }),
    { numRuns: 200 },
  )
})
