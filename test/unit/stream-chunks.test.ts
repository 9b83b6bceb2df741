/** Tests that stream chunks from nonconforming backends are normalized for clients. */
import { describe, expect, test } from 'vitest'
import { encodeEvent } from '../../src/chat/sse-reader.ts'
import { answerOptions, parseEventData, readClientBytes } from '../support/client-streams.ts'

type Fields = Record<string, unknown>

const names = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'm' }
const stop = { index: 0, delta: {}, finish_reason: 'stop' }

function chunkOf(...choices: Fields[]): Fields {
  return { ...names, choices }
}

function choiceOf(delta: Fields, more: Fields = {}): Fields {
  return { index: 0, delta, finish_reason: null, ...more }
}

function calls(...tool_calls: Fields[]): Fields {
  return choiceOf({ tool_calls })
}

async function normalize(chunks: readonly unknown[], options = answerOptions()): Promise<Fields[]> {
  const { bytes, failure } = await readClientBytes(chunks.map(encodeEvent), options)
  if (failure !== undefined) throw failure
  return parseEventData(bytes) as Fields[]
}

/** Sends each choice in a separate chunk and returns the normalized choices. */
async function normalizeChoices(...choices: Fields[]): Promise<unknown[]> {
  const normalized = await normalize(choices.map((choice) => chunkOf(choice)))
  return normalized.flatMap((chunk) => chunk.choices)
}

const begin = choiceOf({ role: 'assistant', content: '' })

describe('the role in a stream', () => {
  test('is sent once even if every chunk from the backend contains it', async () => {
    const sent = ['a', 'b', ''].map((content) => choiceOf({ role: 'assistant', content }))
    const got = await normalizeChoices(...sent, stop)
    expect(got).toEqual([choiceOf({ role: 'assistant', content: 'a' }), choiceOf({ content: 'b' }), stop])
  })

  test('is added to the first chunk if the backend does not send one', async () => {
    expect(await normalizeChoices(choiceOf({ content: 'a' }), stop)).toEqual([
      choiceOf({ role: 'assistant', content: 'a' }),
      stop,
    ])
  })

  test('is sent once for every choice', async () => {
    const chunks = [0, 1, 0, 1].map((index) =>
      chunkOf(choiceOf({ role: 'assistant', content: 'a' }, { index })),
    )
    const ends = [0, 1].map((index) => chunkOf({ ...stop, index }))
    const got = await normalize([...chunks, ...ends], answerOptions({ choices: 2 }))
    const roles = got.flatMap(({ choices }) =>
      (choices as { delta: Fields }[]).map(({ delta }) => delta.role),
    )
    expect(roles).toEqual(['assistant', 'assistant', undefined, undefined, undefined, undefined])
  })
})

describe('the finish reason in a stream', () => {
  test('is sent in a separate chunk with an empty delta', async () => {
    const sent = choiceOf({ content: 'a' }, { finish_reason: 'length', logprobs: { content: ['x'] } })
    expect(await normalizeChoices(begin, sent)).toEqual([
      begin,
      choiceOf({ content: 'a' }, { logprobs: { content: ['x'] } }),
      { ...stop, finish_reason: 'length' },
    ])
  })

  test('is sent once, with the extra fields from the backend', async () => {
    const end = choiceOf({ role: 'assistant', content: '' }, { finish_reason: 'stop', stop_reason: 7 })
    expect(await normalizeChoices(begin, end, end)).toEqual([begin, { ...stop, stop_reason: 7 }])
  })
})

describe('a streamed tool call', () => {
  test('contains its id, type and name only in its first delta', async () => {
    const whole = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{"x"' } }
    const again = { ...whole, function: { name: 'f', arguments: ':1}' } }
    expect(
      await normalizeChoices(begin, calls(whole), calls(again), calls({ ...whole, function: {} }), stop),
    ).toEqual([begin, calls(whole), calls({ index: 0, function: { arguments: ':1}' } }), stop])
  })

  test('receives an index, an id and a type if the backend omits them', async () => {
    const [f, g] = ['f', 'g'].map((name) => ({ function: { name, arguments: '{}' } }))
    expect(await normalizeChoices(begin, calls(f as Fields, g as Fields), stop)).toEqual([
      begin,
      calls(
        { index: 0, id: 'call_1', type: 'function', ...f },
        { index: 1, id: 'call_2', type: 'function', ...g },
      ),
      stop,
    ])
  })

  test('is sent with a unique index if the backend repeats one', async () => {
    const sent = ['a', 'b'].map((id) => ({
      index: 0,
      id,
      type: 'function',
      function: { name: 'f', arguments: '{}' },
    }))
    const got = await normalizeChoices(begin, ...sent.map((call) => calls(call)), stop)
    expect(got).toEqual([begin, calls(sent[0] as Fields), calls({ ...sent[1], index: 1 }), stop])
  })

  test.each([
    ['an empty object for missing ones', undefined, '{}'],
    ['an empty object for null', null, '{}'],
    ['a string for an object', { x: [1] }, '{"x":[1]}'],
  ])('is sent with normalized arguments: %s', async (_what, sent, joined) => {
    const call = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: sent } }
    const got = (await normalizeChoices(begin, calls(call), stop)) as { delta: { tool_calls?: Fields[] } }[]
    const deltas = got.flatMap(({ delta }) => delta.tool_calls ?? []) as {
      function: { arguments: unknown }
    }[]
    expect(deltas.every((delta) => typeof delta.function.arguments === 'string')).toBe(true)
    expect(deltas.map((delta) => delta.function.arguments).join('')).toBe(joined)
    expect(got.at(-1)).toEqual(stop)
  })

  test('may arrive in parts with null fields', async () => {
    const part = { index: 0, id: null, type: null, function: { name: null, arguments: '}' } }
    const first = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{' } }
    expect(await normalizeChoices(begin, calls(first), calls(part), stop)).toEqual([
      begin,
      calls(first),
      calls({ index: 0, function: { arguments: '}' } }),
      stop,
    ])
  })

  test('is absent, as is the field tool_calls, if the backend sends null or an empty list', async () => {
    const sent = [null, []].map((tool_calls) => choiceOf({ content: 'a', tool_calls }))
    expect(await normalizeChoices(begin, ...sent, stop)).toEqual([
      begin,
      choiceOf({ content: 'a' }),
      choiceOf({ content: 'a' }),
      stop,
    ])
  })
})

describe("a backend's chunk", () => {
  test('is sent with its unknown fields', async () => {
    const sent = [
      { ...chunkOf(choiceOf({ role: 'assistant', content: null, refusal: null })), x_provider: { a: 1 } },
      chunkOf(
        choiceOf(
          { reasoning_content: 'hm', reasoning_details: [{ type: 'x' }] },
          { native_finish_reason: null },
        ),
      ),
      chunkOf(choiceOf({ content: '' }, { content_filter_results: { hate: { severity: 'safe' } } })),
      chunkOf(stop),
    ]
    expect(await normalize(sent)).toEqual(sent)
  })

  test('is split into two chunks if it contains two choices', async () => {
    const both = chunkOf(choiceOf({ content: 'a' }), choiceOf({ content: 'b' }, { index: 1 }))
    const ends = chunkOf(stop, { ...stop, index: 1 })
    const got = await normalize([both, ends], answerOptions({ choices: 2 }))
    expect(got.map(({ choices }) => (choices as { index: number }[]).map(({ index }) => index))).toEqual([
      [0],
      [1],
      [0],
      [1],
    ])
  })

  test('is omitted if it has no content', async () => {
    const nothing = [chunkOf(), chunkOf(choiceOf({ content: '' })), chunkOf(choiceOf({}, { logprobs: null }))]
    expect(await normalize([...nothing.slice(0, 1), chunkOf(begin), ...nothing, chunkOf(stop)])).toEqual([
      chunkOf(begin),
      chunkOf(stop),
    ])
  })

  test('receives an id, an index and a finish reason if it omits them', async () => {
    const bare = (delta: Fields) => ({ choices: [{ delta }] })
    const made = { id: 'chatcmpl-made', object: 'chat.completion.chunk', created: 1, model: 'made' }
    const end = { choices: [{ delta: {}, finish_reason: 'stop' }] }
    expect(await normalize([bare({ role: 'assistant' }), bare({ content: 'a' }), end])).toEqual([
      { ...made, choices: [choiceOf({ role: 'assistant' })] },
      { ...made, choices: [choiceOf({ content: 'a' })] },
      { ...made, choices: [stop] },
    ])
  })

  test.each([
    ['in the last choice chunk', [{ ...chunkOf(stop), usage: { total_tokens: 3 } }]],
    ['in a separate chunk', [chunkOf(stop), { ...chunkOf(), usage: { total_tokens: 3 } }]],
    ['in a separate chunk without choices', [chunkOf(stop), { ...names, usage: { total_tokens: 3 } }]],
  ])('is sent without usage that the client did not request: %s', async (_where, ending) => {
    expect(await normalize([chunkOf(begin), ...ending])).toEqual([chunkOf(begin), chunkOf(stop)])
  })
})

describe('a stream from a backend', () => {
  const good = encodeEvent(chunkOf(begin))
  test.each([
    ['with an event that is not JSON', 'data: {"id"\n\n', 'protocol'],
    ['with an event that is not an object', 'data: 7\n\n', 'protocol'],
    ['with an event without choices', 'data: {"detail":"overloaded"}\n\n', 'protocol'],
    ['with a choice that is not an object', 'data: {"choices":[null]}\n\n', 'protocol'],
    [
      'with tool calls that are not a list',
      'data: {"choices":[{"delta":{"tool_calls":{}}}]}\n\n',
      'protocol',
    ],
    [
      'with a tool call that is not an object',
      'data: {"choices":[{"delta":{"tool_calls":[7]}}]}\n\n',
      'protocol',
    ],
    ['with an error event', 'data: {"error":{"message":"overloaded","code":503}}\n\n', 'status'],
    ['if it ends without a finish reason', '', 'protocol'],
    ['if it ends in the middle of a line', 'data: {"id":"chatcmpl-1","choi', 'protocol'],
    ['with [DONE] before the finish reason', 'data: [DONE]\n\n', 'protocol'],
  ])('fails %s', async (_how, text, kind) => {
    const { bytes, failure } = await readClientBytes([Buffer.concat([good, Buffer.from(text)])])
    expect(bytes).toEqual(good)
    expect(failure).toMatchObject({ name: 'BackendFailure', kind })
  })

  test('succeeds without [DONE] after all choices have finished', async () => {
    const { failure } = await readClientBytes([good, encodeEvent(chunkOf(stop))])
    expect(failure).toBeUndefined()
  })

  test('fails without [DONE] if one of two choices has not finished', async () => {
    const { failure } = await readClientBytes(
      [good, encodeEvent(chunkOf(stop))],
      answerOptions({ choices: 2 }),
    )
    expect(failure).toMatchObject({ kind: 'protocol' })
  })
})
