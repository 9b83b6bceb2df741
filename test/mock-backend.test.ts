/** What the mock backend answers: its directives, its tool calls, its structured answers, and streams equal to whole answers. */

import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import OpenAI from 'openai'
import { zodResponseFormat } from 'openai/helpers/zod'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { BackendFailure } from '../src/chat/backend.ts'
import { createMockBackend } from '../src/chat/backends/mock.ts'

type Body = Record<string, unknown>

interface ToolCallDelta {
  index: number
  id?: string
  type?: string
  function: { name?: string; arguments: string }
}

interface Chunk {
  id: string
  object: string
  created: number
  model: string
  choices: {
    index: number
    delta: { role?: string; content?: string | null; tool_calls?: ToolCallDelta[] }
    finish_reason: string | null
    logprobs?: { content: { token: string }[] }
  }[]
  usage?: { prompt_tokens: number; completion_tokens: number; total_tokens: number }
}

const signal = new AbortController().signal

/** A backend on a fixed clock whose waits are written down instead of waited for. */
function createWorld() {
  const waitsMs: number[] = []
  let ids = 0
  const backend = createMockBackend({
    clock: { now: () => 1_700_000_000_999 },
    newId: () => `id${++ids}`,
    wait: async (ms) => {
      waitsMs.push(ms)
    },
  })
  return { backend, waitsMs }
}

const { backend } = createWorld()

function say(content: unknown, more: Body = {}): Body {
  return { model: 'mock', messages: [{ role: 'user', content }], ...more }
}

async function complete(body: Body, from = backend) {
  const bytes = await from.complete({ body, signal })
  return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as OpenAI.ChatCompletion
}

async function answerTo(body: Body) {
  const choice = (await complete(body)).choices[0]
  if (choice === undefined) throw new Error('an answer without choices')
  return choice
}

async function textOf(body: Body) {
  return (await answerTo(body)).message.content
}

async function callsOf(body: Body) {
  const calls = (await answerTo(body)).message.tool_calls ?? []
  return calls.flatMap((call) =>
    call.type === 'function' ? [[call.function.name, JSON.parse(call.function.arguments)]] : [],
  )
}

async function readAll(reader: AsyncIterator<Uint8Array, void, void>) {
  const reads: Uint8Array[] = []
  for (let item = await reader.next(); !item.done; item = await reader.next()) reads.push(item.value)
  return reads
}

async function streamText(body: Body, from = backend) {
  return Buffer.concat(await readAll(await from.stream({ body, signal }))).toString('utf8')
}

function parseChunks(text: string): Chunk[] {
  const events = text.split('\n\n').slice(0, -1)
  return events
    .filter((event) => event !== 'data: [DONE]')
    .map((event) => JSON.parse(event.replace(/^data: /, '')))
}

async function streamChunks(body: Body) {
  return parseChunks(await streamText(body))
}

/** Puts the deltas of one choice together, as a client does. */
function joinChoice(chunks: readonly Chunk[], index: number) {
  const parts = chunks.flatMap((chunk) => chunk.choices).filter((choice) => choice.index === index)
  const calls: { id: string | undefined; name: string; arguments: string }[] = []
  for (const delta of parts.flatMap((part) => part.delta.tool_calls ?? [])) {
    const call = calls[delta.index] ?? { id: delta.id, name: delta.function.name ?? '', arguments: '' }
    calls[delta.index] = { ...call, arguments: call.arguments + delta.function.arguments }
  }
  const content = parts.map((part) => part.delta.content ?? '').join('')
  return { content: calls.length > 0 ? null : content, calls, finish: parts.at(-1)?.finish_reason }
}

async function failureOf(attempt: Promise<unknown>): Promise<BackendFailure> {
  const failure = await attempt.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(failure).toBeInstanceOf(BackendFailure)
  return failure as BackendFailure
}

function tool(name: string, parameters?: unknown) {
  return { type: 'function', function: { name, ...(parameters !== undefined && { parameters }) } }
}

const weatherSchema = {
  type: 'object',
  properties: {
    city: { type: 'string' },
    days: { type: 'integer', minimum: 1, maximum: 7 },
    celsius: { type: 'boolean' },
    unit: { enum: ['kelvin', 'celsius'] },
    tags: { type: 'array', items: { type: 'string' } },
  },
  required: ['city', 'unit'],
}
const weather = tool('get_weather', weatherSchema)
const clock = tool('get_time')

describe('an echo', () => {
  test('repeats the last user text in a whole completion', async () => {
    expect(await complete(say('Hello there', { model: 'mock-9' }), createWorld().backend)).toEqual({
      id: 'chatcmpl-id1',
      object: 'chat.completion',
      created: 1_700_000_000,
      model: 'mock-9',
      system_fingerprint: expect.any(String),
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'You said: Hello there', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
    })
  })

  test('is streamed a word an event, role first, an empty delta with the finish last, then [DONE]', async () => {
    const text = await streamText(say('Hello  🌍 wörld\n', { model: 'm' }), createWorld().backend)
    const same = { id: 'chatcmpl-id1', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'm' }
    const chunk = (delta: object, finish_reason: string | null = null) =>
      expect.objectContaining({ ...same, choices: [{ index: 0, delta, finish_reason }] })
    expect(text.endsWith('}\n\ndata: [DONE]\n\n')).toBe(true)
    expect(parseChunks(text)).toEqual([
      chunk({ role: 'assistant', content: '' }),
      ...['You', ' said:', ' Hello', '  🌍', ' wörld', '\n'].map((content) => chunk({ content })),
      chunk({}, 'stop'),
    ])
  })

  test('takes the text parts of the last user message, whatever stands after it', async () => {
    const image = { type: 'image_url', image_url: { url: 'data:,' } }
    const parts = [{ type: 'text', text: 'What is' }, image, { type: 'text', text: 'this?' }]
    const messages = [
      { role: 'user', content: 'first' },
      { role: 'user', content: parts },
      { role: 'assistant', content: 'Let me see' },
    ]
    expect(await textOf({ messages })).toBe('You said: What is this?')
    expect((await complete({ messages })).model).toBe('mock')
  })

  test('is the same each time, with a seed down to the id and the ids of its tool calls', async () => {
    const body = say('use get_time', { seed: 7, tools: [clock] })
    const first = await complete(body)
    expect(await complete(body)).toEqual(first)
    expect((await complete({ ...body, seed: 8 })).id).not.toBe(first.id)
    expect((await complete(say('hi'))).id).not.toBe((await complete(say('hi'))).id)
  })

  test.each([
    ['no messages', {}],
    ['empty messages', { messages: [{}] }],
    ['null content', say(null)],
    ['odd parts', say([null, 4, { type: 'text', text: 5 }])],
    ['nulls for numbers', say('', { n: null, max_tokens: null, seed: null, top_logprobs: null, stop: null })],
    ['odd tools', say('', { tools: [null, {}, { function: null }, tool('')], tool_choice: 'required' })],
    ['odd formats', say('', { response_format: null, stream_options: null, tool_choice: { type: 'x' } })],
  ])('is empty but well formed for %s', async (_, body) => {
    expect(await answerTo(body)).toMatchObject({ message: { content: 'You said: ' }, finish_reason: 'stop' })
  })
})

describe('directives', () => {
  test.each([
    ['[[delay:5]] hello', 'hello'],
    ['hello [[delay:5]]', 'hello'],
    ['a [[delay:5]] b', 'a b'],
    ['a[[delay:5]]b', 'ab'],
    ['a [[delay:1]] [[delay:2]] b\n', 'a b\n'],
    ['[[delay:1]]', ''],
    ['[[delay:x]] [[unknown:1]] [[error:200]] [[[hang]', '[[delay:x]] [[unknown:1]] [[error:200]] [[[hang]'],
    ['[[tool:f {"a":}]] [[tool:f {"a":1]]', '[[tool:f {"a":}]] [[tool:f {"a":1]]'],
  ])('leave of %j the text %j', async (source, rest) => {
    expect(await textOf(say(source))).toBe(`You said: ${rest}`)
  })

  test('count in the last user message only', async () => {
    const messages = [
      { role: 'system', content: '[[tokens:3]]' },
      { role: 'user', content: '[[error:500]]' },
      { role: 'assistant', content: '[[hang]]' },
      { role: 'user', content: 'hi' },
    ]
    expect(await textOf({ messages })).toBe('You said: hi')
  })

  test('[[tool:NAME {json}]] calls tools in order, brackets inside the JSON included', async () => {
    const args = '{"grid": [[1, 2], [3]], "text": "}]] \\" [["}'
    const body = say(`go [[tool:first ${args}]] [[tool:second]] [[tool:second { } ]]`)
    const { message, finish_reason } = await answerTo(body)
    const called = (id: number, name: string, text: string) => ({
      id: expect.stringMatching(new RegExp(`^call_\\w+_${id}$`)),
      type: 'function',
      function: { name, arguments: text },
    })
    expect(finish_reason).toBe('tool_calls')
    expect(message.content).toBe(null)
    expect(message.tool_calls).toEqual([
      called(0, 'first', args),
      called(1, 'second', '{}'),
      called(2, 'second', '{ }'),
    ])
  })

  test('[[tokens:N]] answers with exactly so many words, a hundred thousand at most', async () => {
    const five = await complete(say('[[tokens:5]] ignored'))
    expect(five.choices[0]?.message.content?.split(' ')).toHaveLength(5)
    expect(five.usage?.completion_tokens).toBe(5)
    expect(await textOf(say('[[tokens:0]]'))).toBe('')
    const { content } = joinChoice(await streamChunks(say('[[tokens:999999999]]')), 0)
    expect(content?.split(' ')).toHaveLength(100_000)
    expect((await streamChunks(say('[[tokens:1000]]'))).length).toBe(1002)
  })

  test('[[delay:MS]] waits before every chunk of a stream and once before a whole answer', async () => {
    const world = createWorld()
    const body = say('[[delay:30]] one two')
    const reads = await readAll(await world.backend.stream({ body, signal }))
    expect(reads.map((read) => parseChunks(Buffer.from(read).toString()).length)).toEqual([1, 1, 1, 1, 1, 1])
    expect(world.waitsMs).toEqual([30, 30, 30, 30, 30, 30])
    await complete(body, world.backend)
    expect(world.waitsMs).toHaveLength(7)
  })

  test.each([[400], [401], [429], [500], [599]])(
    '[[error:%i]] fails before anything is sent',
    async (status) => {
      const body = say(`[[error:${status}]]`)
      for (const attempt of [backend.complete({ body, signal }), backend.stream({ body, signal })]) {
        const failure = await failureOf(attempt)
        expect(failure).toMatchObject({ kind: 'status', status })
        expect(failure.retryAfterSeconds).toBe(status === 429 ? 1 : undefined)
        expect(failure.said?.message).toBe(status === 400 ? failure.message : undefined)
      }
    },
  )

  test.each([
    ['nothing', 0, 'a b', 0],
    ['three chunks', 3, 'a b', 3],
    ['more chunks than one read brings', 100, '[[tokens:200]]', 100],
    ['the last chunk when the answer is shorter', 50, 'a b', 6],
  ])('[[break:N]] breaks a stream off after %s', async (_, breakAfter, text, chunks) => {
    const reader = await backend.stream({ body: say(`[[break:${breakAfter}]] ${text}`), signal })
    let received = ''
    const reading = (async () => {
      for (;;) received += Buffer.from((await reader.next()).value ?? '[ended]').toString()
    })()
    expect(await failureOf(reading)).toMatchObject({ kind: 'unreachable' })
    expect(parseChunks(received)).toHaveLength(chunks)
    expect(received).not.toContain('[DONE]')
    expect(await reader.next()).toEqual({ done: true, value: undefined })
  })

  test('[[break:N]] fails a whole answer at once', async () => {
    const failure = await failureOf(backend.complete({ body: say('[[break:9]] [[delay:50]]'), signal }))
    expect(failure).toMatchObject({ kind: 'unreachable', status: undefined })
  })

  test.each(['complete', 'stream'] as const)(
    '[[hang]] never answers %s until the signal ends it',
    async (verb) => {
      const caller = new AbortController()
      let isSettled = false
      const attempt = backend[verb]({ body: say('[[hang]]'), signal: caller.signal }).finally(() => {
        isSettled = true
      })
      await new Promise((resolve) => setImmediate(resolve))
      expect(isSettled).toBe(false)
      caller.abort(new BackendFailure('timeout', 'too slow'))
      expect(await failureOf(attempt)).toMatchObject({ kind: 'timeout', message: 'too slow' })
    },
  )

  test('text made to be slow to read is read at once', async () => {
    const texts = ['[[tool:f {', '[[', '[[hang]', 'x[[delay:1]]', ' ', 'a="', '[[tool:f {"'].map((part) =>
      part.repeat(200_000),
    )
    for (const text of texts) {
      expect(await callsOf(say(text, { tools: [weather], tool_choice: 'required' }))).toHaveLength(1)
    }
  }, 10_000)
})

describe('leaving', () => {
  const createStuck = () =>
    createMockBackend({
      clock: Date,
      newId: () => 'id',
      wait: (_ms, waitSignal) =>
        new Promise((_, reject) => {
          waitSignal.addEventListener('abort', () => reject(new Error('wait ended')), { once: true })
        }),
    })

  test.each(['complete', 'stream', 'listModels'] as const)(
    '%s refuses a call that was aborted before',
    async (verb) => {
      const gone = AbortSignal.abort(new Error('gone'))
      const attempt =
        verb === 'listModels' ? backend.listModels(gone) : backend[verb]({ body: say('hi'), signal: gone })
      await expect(attempt).rejects.toThrow('gone')
    },
  )

  test('an abort ends a waiting stream and a waiting answer with the reason of the signal', async () => {
    const caller = new AbortController()
    const request = { body: say('[[delay:1000]] hi'), signal: caller.signal }
    const reader = await createStuck().stream(request)
    const attempts = [reader.next(), createStuck().complete(request)]
    caller.abort(new Error('left'))
    for (const attempt of attempts) await expect(attempt).rejects.toThrow('left')
    expect(await reader.next()).toEqual({ done: true, value: undefined })
  })

  test('an abort between two reads ends a stream that does not wait', async () => {
    const caller = new AbortController()
    const reader = await backend.stream({ body: say('[[tokens:500]]'), signal: caller.signal })
    await reader.next()
    caller.abort(new Error('left'))
    await expect(reader.next()).rejects.toThrow('left')
  })

  test('return ends the stream and the wait it is in', async () => {
    const reader = await createStuck().stream({ body: say('[[delay:1000]] hi'), signal })
    const pending = reader.next()
    expect(await reader.return?.()).toEqual({ done: true, value: undefined })
    expect(await pending).toEqual({ done: true, value: undefined })
    expect(await reader.next()).toEqual({ done: true, value: undefined })
  })
})

describe('tool calls', () => {
  const both = { tools: [clock, weather] }
  const filled = { city: 'text', unit: 'kelvin' }
  const allowed = (mode: string, ...tools: unknown[]) => ({
    tool_choice: { type: 'allowed_tools', allowed_tools: { mode, tools } },
  })

  test.each([
    ['a name in the text', 'please get_weather now', both, [['get_weather', filled]]],
    [
      'names in the order of the text',
      'get_weather, then get_time.',
      both,
      [
        ['get_weather', filled],
        ['get_time', {}],
      ],
    ],
    [
      'one name without parallel calls',
      'get_weather get_time',
      { ...both, parallel_tool_calls: false },
      [['get_weather', filled]],
    ],
    [
      'one directive without parallel calls',
      '[[tool:a]] [[tool:b]]',
      { parallel_tool_calls: false },
      [['a', {}]],
    ],
    ['no part of a longer name', 'get_weathers my-get_time', both, []],
    ['no name', 'hello', { ...both, tool_choice: 'auto' }, []],
    ['none', 'get_weather [[tool:get_time]]', { ...both, tool_choice: 'none' }, []],
    ['required', 'hello', { ...both, tool_choice: 'required' }, [['get_time', {}]]],
    ['required and a name', 'get_weather', { ...both, tool_choice: 'required' }, [['get_weather', filled]]],
    ['required without tools', 'hello', { tool_choice: 'required' }, []],
    ['a named function', 'get_time', { ...both, tool_choice: weather }, [['get_weather', filled]]],
    ['a named function that is not offered', 'get_time', { ...both, tool_choice: tool('other') }, []],
    [
      'allowed tools, required',
      'get_time',
      { ...both, ...allowed('required', weather) },
      [['get_weather', filled]],
    ],
    [
      'allowed tools, auto',
      'get_time get_weather',
      { ...both, ...allowed('auto', clock) },
      [['get_time', {}]],
    ],
    ['allowed tools, auto, unnamed', 'hello', { ...both, ...allowed('auto', clock) }, []],
  ])('%s', async (_, text, more, calls) => {
    expect(await callsOf(say(text, more))).toEqual(calls)
  })

  test.each([
    ['city=Paris, days=3!', { city: 'Paris', days: 3, unit: 'kelvin' }],
    ['city="New York" celsius=true unit=celsius', { city: 'New York', celsius: true, unit: 'celsius' }],
    ["(city='') tags=a,b", { city: '', unit: 'kelvin', tags: ['a', 'b'] }],
    ['days=9 celsius=maybe unit=x other=1', { ...filled, days: 1, celsius: true }],
    ['city=🏙️ days=2.5 __proto__=x', { city: '🏙️', unit: 'kelvin', days: 1 }],
  ])('arguments are filled from %j in the types of the schema', async (text, args) => {
    expect(await callsOf(say(`get_weather ${text}`, both))).toEqual([['get_weather', args]])
  })

  test('properties inside objects and arrays are filled too', async () => {
    const place = { type: 'object', properties: { name: { type: ['null', 'string'] } }, required: ['name'] }
    const schema = {
      type: 'object',
      properties: {
        from: { $ref: '#/$defs/place' },
        stops: { type: 'array', items: { $ref: '#/$defs/place' } },
      },
      required: ['from', 'stops'],
      $defs: { place },
    }
    const body = say('route name=Rome', { tools: [tool('route', schema)] })
    expect(await callsOf(body)).toEqual([['route', { from: { name: 'Rome' }, stops: [{ name: 'Rome' }] }]])
  })

  test('are streamed with id, type and name in the first delta of each call only', async () => {
    const chunks = await streamChunks(say('get_weather get_time', both))
    const deltas = chunks.map((chunk) => chunk.choices[0]?.delta)
    expect(deltas[0]).toEqual({ role: 'assistant', content: null })
    expect(deltas.at(-1)).toEqual({})
    const calls = deltas.slice(1, -1).map((delta) => delta?.tool_calls?.[0])
    expect(deltas.slice(1, -1).every((delta) => delta?.tool_calls?.length === 1)).toBe(true)
    const named = calls.filter((call) => call?.id !== undefined)
    expect(named).toEqual([
      {
        index: 0,
        id: expect.any(String),
        type: 'function',
        function: { name: 'get_weather', arguments: '' },
      },
      { index: 1, id: expect.any(String), type: 'function', function: { name: 'get_time', arguments: '' } },
    ])
    for (const call of calls.filter((other) => other?.id === undefined)) {
      expect(call).toEqual({ index: expect.any(Number), function: { arguments: expect.any(String) } })
    }
    expect(joinChoice(chunks, 0)).toMatchObject({
      calls: [{ arguments: JSON.stringify(filled) }, { arguments: '{}' }],
      finish: 'tool_calls',
    })
  })

  test('after tool results the answer quotes all of them and calls nothing', async () => {
    const results = [
      { role: 'tool', tool_call_id: 'a', content: '21 °C' },
      { role: 'tool', tool_call_id: 'b', content: [{ type: 'text', text: 'noon' }] },
    ]
    const messages = [
      { role: 'user', content: 'get_weather [[tool:get_time]]' },
      { role: 'tool', tool_call_id: 'old', content: 'old' },
      { role: 'assistant', content: null, tool_calls: [] },
      ...results,
    ]
    expect(await answerTo({ messages, ...both, tool_choice: 'required' })).toMatchObject({
      message: { content: 'The tool answered: 21 °C\nThe tool answered: noon' },
      finish_reason: 'stop',
    })
  })
})

describe('parameters', () => {
  test('n gives so many choices, each complete in a stream', async () => {
    const body = say('get_time', { n: 3, tools: [clock] })
    const { choices } = await complete(body)
    expect(choices.map((choice) => choice.index)).toEqual([0, 1, 2])
    const chunks = await streamChunks(body)
    const joined = [0, 1, 2].map((index) => joinChoice(chunks, index))
    expect(joined.map(({ finish }) => finish)).toEqual(['tool_calls', 'tool_calls', 'tool_calls'])
    expect(new Set(joined.flatMap(({ calls }) => calls.map((call) => call.id))).size).toBe(3)
  })

  test.each([
    [{ stop: 'two' }, 'You said: one ', 'stop'],
    [{ stop: ['x', 'three', 'two'] }, 'You said: one ', 'stop'],
    [{ stop: ['', 'absent'] }, 'You said: one two three', 'stop'],
    [{ max_tokens: 3 }, 'You said: one', 'length'],
    [{ max_completion_tokens: 2, max_tokens: 9 }, 'You said:', 'length'],
    [{ max_tokens: 5 }, 'You said: one two three', 'stop'],
    [{ max_tokens: 3, stop: 'said' }, 'You ', 'stop'],
  ])('%j cuts the text to %j and finishes with %s', async (more, content, finish_reason) => {
    expect(await answerTo(say('one two three', more))).toMatchObject({ message: { content }, finish_reason })
  })

  test('include_usage adds one chunk with usage and no choices, equal to the usage of the whole answer', async () => {
    const body = say('use get_time', { tools: [clock], n: 2, stream_options: { include_usage: true } })
    const chunks = await streamChunks(body)
    const { usage } = await complete(body)
    expect(chunks.filter((chunk) => 'usage' in chunk)).toEqual([chunks.at(-1)])
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage })
    expect(usage).toEqual({ prompt_tokens: 3, completion_tokens: 6, total_tokens: 9 })
    const unasked = await streamChunks(say('hi', { stream_options: { include_usage: false } }))
    expect(unasked.some((chunk) => 'usage' in chunk || chunk.choices.length === 0)).toBe(false)
  })

  test('logprobs come for every token of the text, with the bytes and so many alternatives', async () => {
    const body = say('né 🎉', { logprobs: true, top_logprobs: 2 })
    const { logprobs, message } = await answerTo(body)
    const tokens = logprobs?.content ?? []
    expect(tokens.map(({ token }) => token).join('')).toBe(message.content)
    expect(Buffer.from(tokens.flatMap(({ bytes }) => bytes ?? [])).toString()).toBe(message.content)
    expect(tokens.every(({ logprob, top_logprobs }) => logprob < 0 && top_logprobs.length === 2)).toBe(true)
    const streamed = (await streamChunks(body)).flatMap((chunk) => chunk.choices[0]?.logprobs?.content ?? [])
    expect(streamed).toEqual(tokens)
  })
})

describe('structured answers', () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  const tree = {
    $ref: '#/$defs/node',
    $defs: {
      node: {
        type: 'object',
        properties: {
          next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] },
          children: { type: 'array', items: { $ref: '#/$defs/node' } },
        },
        required: ['next', 'children'],
        additionalProperties: false,
      },
    },
  }

  async function instanceOf(schema: unknown) {
    const response_format = { type: 'json_schema', json_schema: { name: 'x', schema } }
    return JSON.parse((await textOf(say('hi type=7', { response_format }))) ?? '')
  }

  test.each<[string, object | boolean]>([
    ['anything', true],
    ['a recursive reference', tree],
    [
      'a reference to the document',
      { type: 'object', properties: { up: { anyOf: [{ $ref: '#' }, { type: 'null' }] } }, required: ['up'] },
    ],
    ['an encoded reference', { $ref: '#/$defs/a~1b%20c', $defs: { 'a/b c': { const: 4 } } }],
    [
      'a base type inside its heir',
      {
        allOf: [{ $ref: '#/$defs/b' }, { properties: { b: { $ref: '#/$defs/b' } }, required: ['b'] }],
        $defs: { b: { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] } },
      },
    ],
    [
      'allOf bounds',
      {
        allOf: [
          { type: 'number', minimum: 5 },
          { type: 'integer', minimum: 3, maximum: 5 },
        ],
      },
    ],
    [
      'allOf bounds the other way round',
      {
        allOf: [{ type: 'integer', minimum: 3, maximum: 9 }, { type: 'number', minimum: 5 }, { maximum: 5 }],
      },
    ],
    [
      'anyOf and oneOf together',
      {
        type: 'object',
        anyOf: [{ required: ['a'] }],
        oneOf: [
          { properties: { k: { const: 'x' } }, required: ['k'] },
          { properties: { k: { const: 'y' } }, required: ['k'] },
        ],
      },
    ],
    ['an option that contradicts', { enum: ['b'], anyOf: [{ const: 'a' }, { const: 'b' }] }],
    [
      'an impossible option',
      { anyOf: [false, { type: 'string', minLength: 3, maxLength: 2 }, { type: 'boolean' }] },
    ],
    ['listed values of one type', { type: 'integer', enum: ['a', null, 1.5, 2] }],
    ['null as one of two types', { type: ['null', 'array'], minItems: 2 }],
    ['exclusive bounds', { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 0.001 }],
    ['negative bounds', { type: 'integer', maximum: -10, multipleOf: 7 }],
    ['a multiple of a fraction', { type: 'number', minimum: 10.1, multipleOf: 0.25 }],
    ['lengths', { type: 'string', minLength: 30, maxLength: 31 }],
    ['a short text', { type: 'string', maxLength: 1 }],
    [
      'different items',
      { type: 'array', minItems: 4, uniqueItems: true, items: { anyOf: [{ type: 'string' }] } },
    ],
    [
      'different numbers',
      { type: 'array', minItems: 3, uniqueItems: true, items: { type: 'integer', minimum: 0, maximum: 2 } },
    ],
    [
      'different numbers below a bound',
      {
        type: 'array',
        minItems: 3,
        uniqueItems: true,
        items: { type: 'integer', minimum: 0, exclusiveMaximum: 3 },
      },
    ],
    [
      'different objects',
      {
        type: 'array',
        minItems: 3,
        uniqueItems: true,
        items: {
          type: 'object',
          properties: { kind: { enum: ['a'] }, id: { type: 'string', format: 'uuid' } },
          required: ['kind', 'id'],
        },
      },
    ],
    ['no items', { type: 'array', maxItems: 0, items: { type: 'string' } }],
    ['a tuple', { prefixItems: [{ type: 'string' }, { type: 'boolean' }], items: false, minItems: 2 }],
    ['a property nobody describes', { required: ['a'], additionalProperties: { type: 'number' } }],
    [
      'a number of properties',
      { minProperties: 3, properties: { a: { type: 'null' } }, additionalProperties: { type: 'integer' } },
    ],
    [
      'a property named like a prototype',
      JSON.parse('{"properties":{"__proto__":{"type":"string"}},"required":["__proto__","constructor"]}'),
    ],
    [
      'a pattern',
      { type: 'string', pattern: '^(?:SKU|sku)-[A-F\\d]{4}[^a-z]?(x|y)+\\.\\u0041$', minLength: 15 },
    ],
    ['a pattern with a class to the bracket', { type: 'string', pattern: '^[\\w.%+-]+@[^\\s@]+(?!x)$' }],
  ])('are valid for %s', async (_, schema) => {
    const instance = await instanceOf(schema)
    expect(ajv.validate(schema, instance), JSON.stringify(instance)).toBe(true)
  })

  test.each(
    [
      z.uuid(),
      z.email(),
      z.url(),
      z.iso.datetime(),
      z.iso.date(),
      z.iso.time(),
      z.iso.duration(),
      z.ipv4(),
      z.ipv6(),
      z.cuid(),
      z.ulid(),
      z.nanoid(),
      z.base64(),
      z.e164(),
      z.cidrv4(),
      z.hostname(),
      z.string().startsWith('ab').min(9),
      z.record(z.string(), z.number()),
      z.tuple([z.string(), z.int()]),
      z.union([z.literal(3), z.null()]),
      z.discriminatedUnion('kind', [
        z.object({ kind: z.literal('a'), size: z.number().gt(0).lt(1) }),
        z.object({ kind: z.literal('b') }),
      ]),
      z.intersection(z.object({ a: z.string() }), z.object({ b: z.array(z.enum(['x', 'y'])).min(3) })),
    ].map((schema) => [JSON.stringify(z.toJSONSchema(schema)).slice(65), schema] as const),
  )('satisfy the zod schema behind %s', async (_, schema) => {
    expect(schema.safeParse(await instanceOf(z.toJSONSchema(schema))).error).toBe(undefined)
  })

  test('are valid for schemas at random', async () => {
    const { schema } = fc.letrec<{ schema: object }>((tie) => ({
      schema: fc.oneof(
        { maxDepth: 3 },
        fc.record(
          { type: fc.constant('integer'), minimum: fc.integer({ min: -9, max: 9 }) },
          { requiredKeys: ['type'] },
        ),
        fc.record(
          {
            type: fc.constant('number'),
            exclusiveMaximum: fc.integer(),
            multipleOf: fc.constantFrom(1, 0.5, 3),
          },
          { requiredKeys: ['type'] },
        ),
        fc.record(
          { type: fc.constant('string'), minLength: fc.nat(9), maxLength: fc.integer({ min: 9, max: 20 }) },
          { requiredKeys: ['type'] },
        ),
        fc.record({ enum: fc.uniqueArray(fc.jsonValue({ maxDepth: 1 }), { minLength: 1, maxLength: 3 }) }),
        fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
        fc.record(
          { type: fc.constant('array'), items: tie('schema'), minItems: fc.nat(2) },
          { requiredKeys: ['type'] },
        ),
        fc.dictionary(fc.string({ maxLength: 3 }), tie('schema'), { maxKeys: 3 }).map((properties) => ({
          type: 'object',
          properties,
          required: Object.keys(properties),
          additionalProperties: false,
        })),
      ),
    }))
    await fc.assert(
      fc.asyncProperty(schema, async (candidate) => {
        const instance = await instanceOf(candidate)
        expect(ajv.validate(candidate, instance), JSON.stringify(instance)).toBe(true)
      }),
      { numRuns: 100 },
    )
  })

  test.each([
    ['contradicts itself', { type: 'object', properties: { a: false }, required: ['a'] }],
    ['never ends', { type: 'object', properties: { self: { $ref: '#' } }, required: ['self'] }],
    ['points nowhere', { $ref: 'https://example.com/schema.json' }],
    ['asks for too many', { type: 'array', minItems: 1e9 }],
    [
      'asks for too much',
      { minItems: 1e9, items: { type: 'string', minLength: 9e4, pattern: '[a-z]'.repeat(190) } },
    ],
    [
      'grows without end',
      {
        $ref: '#/$defs/d0',
        $defs: Object.fromEntries(
          Array.from({ length: 40 }, (_, index) => [
            `d${index}`,
            { type: 'array', minItems: 2, items: { $ref: `#/$defs/d${index + 1}` } },
          ]),
        ),
      },
    ],
  ])('are refused with 400 when the schema %s', async (_, schema) => {
    const response_format = { type: 'json_schema', json_schema: { name: 'x', schema } }
    const failure = await failureOf(backend.complete({ body: say('hi', { response_format }), signal }))
    expect(failure).toMatchObject({ kind: 'status', status: 400, said: { param: 'response_format' } })
  })

  test('json_object wraps the text of the answer and is streamed in pieces', async () => {
    const body = say('say "hi"', { response_format: { type: 'json_object' } })
    expect(JSON.parse((await textOf(body)) ?? '')).toEqual({ answer: 'You said: say "hi"' })
    expect((await streamChunks(body)).length).toBeGreaterThan(4)
    expect(await textOf(say('hi', { response_format: { type: 'text' } }))).toBe('You said: hi')
  })
})

describe('a stream', () => {
  test('joins to the whole answer for any request', async () => {
    const word = fc.constantFrom(
      'get_time',
      'get_weather',
      'city=x',
      '🎉',
      ' \n',
      'é',
      '[[tokens:3]]',
      '[[delay:2]]',
      '[[tool:t {"a": "[[b]]"}]]',
      '[[',
    )
    const content = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(fc.oneof(word, fc.string())).map((words) => words.join(' ')),
    )
    const options = fc.record(
      {
        tools: fc.constant([clock, weather]),
        tool_choice: fc.constantFrom('none', 'auto', 'required', null, weather),
        parallel_tool_calls: fc.boolean(),
        n: fc.constantFrom(1, 2, 3, null),
        stop: fc.constantFrom('a', ['e', ' '], null),
        max_tokens: fc.constantFrom(1, 3, 100, null),
        seed: fc.constant(5),
        logprobs: fc.boolean(),
        stream_options: fc.constant({ include_usage: true }),
        response_format: fc.constantFrom(
          { type: 'json_object' },
          { type: 'json_schema', json_schema: { schema: weatherSchema } },
        ),
      },
      { requiredKeys: ['seed'] },
    )
    await fc.assert(
      fc.asyncProperty(content, options, async (text, more) => {
        const body = say(text, more)
        const whole = await complete(body)
        const streamed = await streamText(body)
        const chunks = parseChunks(streamed)
        expect(streamed.endsWith('data: [DONE]\n\n')).toBe(true)
        expect(new Set(chunks.map((chunk) => chunk.id))).toEqual(new Set([whole.id]))
        for (const { index, message, finish_reason } of whole.choices) {
          const calls = message.tool_calls?.map(
            (call) => call.type === 'function' && { id: call.id, ...call.function },
          )
          expect(joinChoice(chunks, index)).toEqual({
            content: message.content,
            calls: calls ?? [],
            finish: finish_reason,
          })
        }
        expect(chunks.at(-1)?.usage).toEqual('stream_options' in more ? whole.usage : undefined)
      }),
      { numRuns: 100 },
    )
  })
})

describe('the official client', () => {
  const client = new OpenAI({
    apiKey: 'unused',
    baseURL: 'http://127.0.0.1:1/v1',
    maxRetries: 0,
    fetch: async (_url, init) => {
      const body = JSON.parse(String(init?.body)) as Body
      if (body.stream !== true) {
        const bytes = await backend.complete({ body, signal })
        return new Response(Buffer.from(bytes), { headers: { 'Content-Type': 'application/json' } })
      }
      return new Response(await streamText(body), { headers: { 'Content-Type': 'text/event-stream' } })
    },
  })
  const Plan = z.object({
    title: z.string().min(10),
    steps: z.array(z.object({ minutes: z.int().positive(), kind: z.enum(['walk', 'ride']) })).min(2),
    note: z.string().nullable(),
  })

  test('parses a structured answer, whole and streamed', async () => {
    const request = {
      model: 'mock',
      messages: [{ role: 'user' as const, content: 'plan' }],
      response_format: zodResponseFormat(Plan, 'plan'),
    }
    const whole = (await client.chat.completions.parse(request)).choices[0]?.message.parsed
    expect(Plan.parse(whole).steps).toHaveLength(2)
    const streamed = await client.chat.completions.stream(request).finalChatCompletion()
    expect(streamed.choices[0]?.message.parsed).toEqual(whole)
  })

  test.each([[false], [true]])('runs tools to the final answer with stream %s', async (stream) => {
    const asked: unknown[] = []
    const run = {
      type: 'function' as const,
      function: {
        name: 'get_weather',
        description: 'Tells the weather.',
        parameters: weatherSchema,
        parse: JSON.parse,
        function: (args: unknown) => {
          asked.push(args)
          return 'sunny'
        },
      },
    }
    const request = {
      model: 'mock',
      messages: [{ role: 'user' as const, content: 'get_weather city=Oslo [[delay:1]]' }],
      tools: [run],
    }
    const runner = stream
      ? client.chat.completions.runTools({ ...request, stream })
      : client.chat.completions.runTools({ ...request, stream: false })
    expect(await runner.finalContent()).toBe('The tool answered: sunny')
    expect(asked).toEqual([{ city: 'Oslo', unit: 'kelvin' }])
  })
})

test('the models are a chat model and an embedding model', async () => {
  expect(backend.name).toBe('mock')
  expect(await backend.listModels(signal)).toEqual([
    { id: 'mock', created: expect.any(Number), ownedBy: 'parley', chats: true },
    { id: 'mock-embedding', created: expect.any(Number), ownedBy: 'parley', chats: false },
  ])
  await backend.close()
})
