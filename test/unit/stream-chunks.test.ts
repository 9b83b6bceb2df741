/** What the chunks of backends become that do not write them as every client needs them. */
import { describe, expect, test } from 'vitest'
import { encodeEvent } from '../../src/chat/sse-reader.ts'
import { chunksIn, menderOptions, readRound } from '../support/rounds.ts'

type Fields = Record<string, unknown>

const names = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'm' }
const stop = { index: 0, delta: {}, finish_reason: 'stop' }

function chunkOf(...choices: Fields[]): Fields {
  return { ...names, choices }
}

/** A choice whose delta holds those fields. */
function says(delta: Fields, more: Fields = {}): Fields {
  return { index: 0, delta, finish_reason: null, ...more }
}

function calls(...tool_calls: Fields[]): Fields {
  return says({ tool_calls })
}

async function mend(chunks: readonly unknown[], options = menderOptions()): Promise<Fields[]> {
  const { bytes, failure } = await readRound(chunks.map(encodeEvent), options)
  if (failure !== undefined) throw failure
  return chunksIn(bytes) as Fields[]
}

/** The choices a caller gets of those choices, each sent in a chunk of its own. */
async function mendChoices(...choices: Fields[]): Promise<unknown[]> {
  const mended = await mend(choices.map((choice) => chunkOf(choice)))
  return mended.flatMap((chunk) => chunk.choices)
}

const begin = says({ role: 'assistant', content: '' })

describe('the role', () => {
  test('in every chunk is sent once', async () => {
    const sent = ['a', 'b', ''].map((content) => says({ role: 'assistant', content }))
    const got = await mendChoices(...sent, stop)
    expect(got).toEqual([says({ role: 'assistant', content: 'a' }), says({ content: 'b' }), stop])
  })

  test('of a backend that gives none is added to the first chunk', async () => {
    expect(await mendChoices(says({ content: 'a' }), stop)).toEqual([
      says({ role: 'assistant', content: 'a' }),
      stop,
    ])
  })

  test('is sent once for every choice', async () => {
    const chunks = [0, 1, 0, 1].map((index) => chunkOf(says({ role: 'assistant', content: 'a' }, { index })))
    const ends = [0, 1].map((index) => chunkOf({ ...stop, index }))
    const got = await mend([...chunks, ...ends], menderOptions({ choices: 2 }))
    const roles = got.flatMap(({ choices }) =>
      (choices as { delta: Fields }[]).map(({ delta }) => delta.role),
    )
    expect(roles).toEqual(['assistant', 'assistant', undefined, undefined, undefined, undefined])
  })
})

describe('the end', () => {
  test('is an empty delta of its own', async () => {
    const sent = says({ content: 'a' }, { finish_reason: 'length', logprobs: { content: ['x'] } })
    expect(await mendChoices(begin, sent)).toEqual([
      begin,
      says({ content: 'a' }, { logprobs: { content: ['x'] } }),
      { ...stop, finish_reason: 'length' },
    ])
  })

  test('is sent once, and keeps what its backend adds', async () => {
    const end = says({ role: 'assistant', content: '' }, { finish_reason: 'stop', stop_reason: 7 })
    expect(await mendChoices(begin, end, end)).toEqual([begin, { ...stop, stop_reason: 7 }])
  })
})

describe('a tool call', () => {
  test('has its id, type and name in its first delta only', async () => {
    const whole = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{"x"' } }
    const again = { ...whole, function: { name: 'f', arguments: ':1}' } }
    expect(
      await mendChoices(begin, calls(whole), calls(again), calls({ ...whole, function: {} }), stop),
    ).toEqual([begin, calls(whole), calls({ index: 0, function: { arguments: ':1}' } }), stop])
  })

  test('has an index, an id and a type, also where its backend gives none', async () => {
    const [f, g] = ['f', 'g'].map((name) => ({ function: { name, arguments: '{}' } }))
    expect(await mendChoices(begin, calls(f as Fields, g as Fields), stop)).toEqual([
      begin,
      calls(
        { index: 0, id: 'call_1', type: 'function', ...f },
        { index: 1, id: 'call_2', type: 'function', ...g },
      ),
      stop,
    ])
  })

  test('has an index of its own where all have the same', async () => {
    const sent = ['a', 'b'].map((id) => ({
      index: 0,
      id,
      type: 'function',
      function: { name: 'f', arguments: '{}' },
    }))
    const got = await mendChoices(begin, ...sent.map((call) => calls(call)), stop)
    expect(got).toEqual([begin, calls(sent[0] as Fields), calls({ ...sent[1], index: 1 }), stop])
  })

  test.each([
    ['an empty object for none', undefined, '{}'],
    ['an empty object for null', null, '{}'],
    ['text for an object', { x: [1] }, '{"x":[1]}'],
  ])('has arguments: %s', async (_what, sent, joined) => {
    const call = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: sent } }
    const got = (await mendChoices(begin, calls(call), stop)) as { delta: { tool_calls?: Fields[] } }[]
    const deltas = got.flatMap(({ delta }) => delta.tool_calls ?? []) as {
      function: { arguments: unknown }
    }[]
    expect(deltas.every((delta) => typeof delta.function.arguments === 'string')).toBe(true)
    expect(deltas.map((delta) => delta.function.arguments).join('')).toBe(joined)
    expect(got.at(-1)).toEqual(stop)
  })

  test('in parts whose empty fields are null is put together', async () => {
    const part = { index: 0, id: null, type: null, function: { name: null, arguments: '}' } }
    const first = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{' } }
    expect(await mendChoices(begin, calls(first), calls(part), stop)).toEqual([
      begin,
      calls(first),
      calls({ index: 0, function: { arguments: '}' } }),
      stop,
    ])
  })

  test('that is null or an empty list is left out', async () => {
    const sent = [null, []].map((tool_calls) => says({ content: 'a', tool_calls }))
    expect(await mendChoices(begin, ...sent, stop)).toEqual([
      begin,
      says({ content: 'a' }),
      says({ content: 'a' }),
      stop,
    ])
  })
})

describe('a chunk', () => {
  test('keeps fields this service does not know', async () => {
    const sent = [
      { ...chunkOf(says({ role: 'assistant', content: null, refusal: null })), x_provider: { a: 1 } },
      chunkOf(
        says({ reasoning_content: 'hm', reasoning_details: [{ type: 'x' }] }, { native_finish_reason: null }),
      ),
      chunkOf(says({ content: '' }, { content_filter_results: { hate: { severity: 'safe' } } })),
      chunkOf(stop),
    ]
    expect(await mend(sent)).toEqual(sent)
  })

  test('with two choices becomes two, each with its index', async () => {
    const both = chunkOf(says({ content: 'a' }), says({ content: 'b' }, { index: 1 }))
    const ends = chunkOf(stop, { ...stop, index: 1 })
    const got = await mend([both, ends], menderOptions({ choices: 2 }))
    expect(got.map(({ choices }) => (choices as { index: number }[]).map(({ index }) => index))).toEqual([
      [0],
      [1],
      [0],
      [1],
    ])
  })

  test('that says nothing is left out', async () => {
    const nothing = [chunkOf(), chunkOf(says({ content: '' })), chunkOf(says({}, { logprobs: null }))]
    expect(await mend([...nothing.slice(0, 1), chunkOf(begin), ...nothing, chunkOf(stop)])).toEqual([
      chunkOf(begin),
      chunkOf(stop),
    ])
  })

  test('without names, index and finish gets them', async () => {
    const bare = (delta: Fields) => ({ choices: [{ delta }] })
    const made = { id: 'chatcmpl-made', object: 'chat.completion.chunk', created: 1, model: 'made' }
    const end = { choices: [{ delta: {}, finish_reason: 'stop' }] }
    expect(await mend([bare({ role: 'assistant' }), bare({ content: 'a' }), end])).toEqual([
      { ...made, choices: [says({ role: 'assistant' })] },
      { ...made, choices: [says({ content: 'a' })] },
      { ...made, choices: [stop] },
    ])
  })

  test.each([
    ['beside the end', [{ ...chunkOf(stop), usage: { total_tokens: 3 } }]],
    ['on its own', [chunkOf(stop), { ...chunkOf(), usage: { total_tokens: 3 } }]],
    ['on its own without choices', [chunkOf(stop), { ...names, usage: { total_tokens: 3 } }]],
  ])('loses its usage: %s', async (_where, ending) => {
    expect(await mend([chunkOf(begin), ...ending])).toEqual([chunkOf(begin), chunkOf(stop)])
  })
})

describe('a stream fails', () => {
  const good = encodeEvent(chunkOf(begin))
  test.each([
    ['with an event that is not JSON', 'data: {"id"\n\n', 'protocol'],
    ['with an event that is no object', 'data: 7\n\n', 'protocol'],
    ['with an event without choices', 'data: {"detail":"overloaded"}\n\n', 'protocol'],
    ['with a choice that is no object', 'data: {"choices":[null]}\n\n', 'protocol'],
    ['with tool calls that are no list', 'data: {"choices":[{"delta":{"tool_calls":{}}}]}\n\n', 'protocol'],
    [
      'with a tool call that is no object',
      'data: {"choices":[{"delta":{"tool_calls":[7]}}]}\n\n',
      'protocol',
    ],
    ['with an error', 'data: {"error":{"message":"overloaded","code":503}}\n\n', 'status'],
    ['at its end, when nothing was finished', '', 'protocol'],
    ['at its end, in half a line', 'data: {"id":"chatcmpl-1","choi', 'protocol'],
    ['with [DONE] before the end', 'data: [DONE]\n\n', 'protocol'],
  ])('%s', async (_how, text, kind) => {
    const { bytes, failure } = await readRound([Buffer.concat([good, Buffer.from(text)])])
    expect(bytes).toEqual(good)
    expect(failure).toMatchObject({ name: 'BackendFailure', kind })
  })

  test('not without [DONE], once all choices have ended', async () => {
    const { failure } = await readRound([good, encodeEvent(chunkOf(stop))])
    expect(failure).toBeUndefined()
  })

  test('without [DONE], when one choice of two has not ended', async () => {
    const { failure } = await readRound([good, encodeEvent(chunkOf(stop))], menderOptions({ choices: 2 }))
    expect(failure).toMatchObject({ kind: 'protocol' })
  })
})
