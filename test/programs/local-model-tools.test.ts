/** Tests tool calls and JSON responses with an in-process model. */
import { describe, expect, test, vi } from 'vitest'
import { startApp } from '../support/app.ts'
import {
  greedy,
  joinText,
  localEnvironment,
  startLocalModelHarness,
  writeModelFile,
} from '../support/local-model.ts'
import { chatMl } from '../support/tiny-template.ts'

// Models are slow on a busy machine.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const harness = startLocalModelHarness()
const CHAT = '/v1/chat/completions'

const paint = {
  type: 'function' as const,
  function: {
    name: 'paint',
    description: 'Paints the wall',
    parameters: {
      type: 'object',
      properties: { colour: { type: 'string', enum: ['red', 'green'] }, isGlossy: { type: 'boolean' } },
      required: ['colour', 'isGlossy'],
    },
  },
}
const wait = { type: 'function' as const, function: { name: 'wait' } }
const tools = [paint, wait]
const choose = (name: string) => ({ type: 'function', function: { name } })

interface Call {
  readonly id: string
  readonly type: string
  readonly function: { readonly name: string; readonly arguments: string }
}

/** Sends a chat completion; returns the parts of its only choice. */
async function ask(body: object) {
  const answer = await harness.app.call('POST', CHAT, { body })
  expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 200 })
  const { message, finish_reason } = answer.body.choices[0]
  return { text: message.content, calls: (message.tool_calls ?? []) as Call[], finish: finish_reason, answer }
}

function expectCallable({ id, type, function: called }: Call): void {
  expect({ id, type }).toEqual({ id: expect.stringMatching(/^call_\w{24}$/), type: 'function' })
  const given = JSON.parse(called.arguments)
  if (called.name === 'wait') expect(given).toEqual({})
  else {
    expect(given).toEqual({ colour: expect.stringMatching(/^(red|green)$/), isGlossy: expect.any(Boolean) })
  }
}

describe('a model with tools', () => {
  test('calls a tool with arguments that match its schema', async () => {
    const { text, calls, finish } = await ask(greedy('Hi', { tools }))
    expect({ text, finish }).toEqual({ text: null, finish: 'tool_calls' })
    expect(calls.length).toBeGreaterThan(0)
    for (const call of calls) expectCallable(call)
  })

  test('streams each tool call in a single chunk', async () => {
    const { events, isDone } = await harness.app.stream(greedy('Hi', { tools }))
    expect(isDone).toBe(true)
    expect(events.at(-1).choices).toEqual([{ index: 0, delta: {}, finish_reason: 'tool_calls' }])
    const deltas = events.flatMap(({ choices }) => choices[0].delta.tool_calls ?? [])
    expect(deltas.map(({ index }) => index)).toEqual(deltas.map((_, index) => index))
    for (const { index: _, ...call } of deltas) expectCallable(call)
    expect(events[0].choices[0].delta.role).toBe('assistant')
  })

  test.each([
    ['required', 'required', ['paint', 'wait']],
    ['the named tool', choose('wait'), ['wait']],
    [
      'one of the allowed tools',
      { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [choose('paint')] } },
      ['paint'],
    ],
  ])('obeys tool_choice (%s)', async (_what, tool_choice, names) => {
    const { calls, finish } = await ask(greedy('Hi', { tools, tool_choice }))
    expect(finish).toBe('tool_calls')
    expect(calls.length).toBeGreaterThan(0)
    for (const call of calls) expect(names).toContain(call.function.name)
  })

  test('responds with text if the tool choice forbids calls', async () => {
    const none = await ask(greedy('Hi', { tools, tool_choice: 'none', max_tokens: 8 }))
    expect(none).toMatchObject({ calls: [], finish: 'length', text: expect.stringMatching(/./) })
    expect(none.answer.body.usage).toEqual((await ask(greedy('Hi', { max_tokens: 8 }))).answer.body.usage)
  })

  test('makes only one call if parallel_tool_calls is false', async () => {
    const { calls } = await ask(greedy('Hi', { tools, tool_choice: 'required', parallel_tool_calls: false }))
    expect(calls).toHaveLength(1)
  })

  test('stops in the middle of a call at the token limit', async () => {
    const say = {
      type: 'function',
      function: { name: 'say', parameters: { type: 'object', properties: { text: { type: 'string' } } } },
    }
    const cut = greedy('Hi', { tools: [say], tool_choice: 'required', max_tokens: 20 })
    const { calls, finish, answer } = await ask(cut)
    expect(finish).toBe('length')
    expect(answer.body.usage.completion_tokens).toBe(20)
    expect(calls[0]?.function).toMatchObject({ name: 'say', arguments: expect.stringMatching(/^\{\s*"text/) })
  })

  test('stops in the middle of a call when the context is full', async () => {
    const text = { type: 'string', minLength: 1000 }
    const write = {
      type: 'function',
      function: {
        name: 'write',
        parameters: { type: 'object', properties: { one: text, two: text, three: text } },
      },
    }
    const app = await startApp({ ...localEnvironment(harness.path), PARLEY_LOCAL_CONTEXT: '800' })
    const { body } = await app.call('POST', CHAT, {
      body: greedy('Hi', { tools: [write], tool_choice: 'required' }),
    })
    const { message, finish_reason } = body.choices[0]
    expect(finish_reason).toBe('length')
    expect(message.tool_calls).toHaveLength(1)
    expect(body.usage.total_tokens).toBeGreaterThan(600)
    expect(body.usage.total_tokens).toBeLessThan(800)
  })
})

describe('a tool result', () => {
  const called = (content: string) => [
    { role: 'user', content: 'Hi' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'paint', arguments: '{"colour":"red"}' } }],
    },
    { role: 'tool', tool_call_id: 'a', content },
  ]

  test('is sent to the model, which responds with text', async () => {
    const { text, calls } = await ask({ ...greedy(''), messages: called('painted'), tools, max_tokens: 8 })
    expect(calls).toEqual([])
    expect(text).toHaveLength(8)
  })

  test('that is valid JSON is not quoted in the prompt', async () => {
    const count = async (content: string) => {
      const { answer } = await ask({ ...greedy(''), messages: called(content), tools, max_tokens: 1 })
      return answer.body.usage.prompt_tokens
    }
    expect((await count('{"a": 1}')) - (await count('{}'))).toBe('"a": 1'.length)
    expect((await count('ab')) - (await count('[]'))).toBe('""'.length)
  })

  test("reaches the model through the official OpenAI client's tool runner", async () => {
    const painted: unknown[] = []
    const runner = harness.app.openai().chat.completions.runTools({
      model: 'tiny',
      temperature: 0,
      max_tokens: 200,
      messages: [{ role: 'user', content: 'Hi' }],
      tools: [
        {
          type: 'function',
          function: {
            ...paint.function,
            function: (given: unknown) => String(painted.push(given)),
            parse: JSON.parse,
          },
        },
      ],
    })
    expect(await runner.finalContent()).toMatch(/^[ -~]+$/)
    expect(painted.length).toBeGreaterThan(0)
  })
})

describe('a JSON response', () => {
  const format = (schema: object) => ({
    response_format: { type: 'json_schema', json_schema: { name: 'answer', strict: true, schema } },
  })

  test('matches its schema, with and without streaming', async () => {
    const { parameters } = paint.function
    const { text, finish } = await ask(greedy('Hi', format(parameters)))
    expect(finish).toBe('stop')
    expect(JSON.parse(text)).toEqual({ colour: expect.any(String), isGlossy: expect.any(Boolean) })
    const { events } = await harness.app.stream(greedy('Hi', format(parameters)))
    expect(joinText(events)).toBe(text)
  })

  test('may be any JSON if the format is json_object', async () => {
    const { text, finish } = await ask(
      greedy('Hi', { response_format: { type: 'json_object' }, max_tokens: 200 }),
    )
    if (finish === 'stop') JSON.parse(text)
    else expect(text).toMatch(/^\s*[{["\d\-tfn]/)
  })

  test('is truncated at the token limit', async () => {
    const { text, finish } = await ask(greedy('Hi', { ...format(paint.function.parameters), max_tokens: 3 }))
    expect(finish).toBe('length')
    expect(() => JSON.parse(text)).toThrow()
  })

  test.each<[string, object, RegExp]>([
    ['anyOf', { anyOf: [{ const: 1 }, { type: 'boolean' }] }, /^(1|true|false)$/],
    ['definitions', { $ref: '#/definitions/a', definitions: { a: { enum: ['x', null] } } }, /^("x"|null)$/],
    [
      'lists',
      { type: 'array', items: { type: 'null' }, minItems: 2, maxItems: 2 },
      /^\[\s*null\s*,\s*null\s*\]$/,
    ],
    ['escaped and non-ASCII characters', { enum: ['\n\r\t"\\\\é😀'] }, /^"\\n\\r\\t\\"\\\\.*"$/],
    ['lengths', { type: 'string', minLength: 2, maxLength: 2 }, /^"..?.?"$/],
    ['several types', { type: ['null', 'boolean'] }, /^(null|true|false)$/],
  ])('matches a schema with %s', async (_what, schema, expected) => {
    expect((await ask(greedy('Hi', { ...format(schema), max_tokens: 200 }))).text.trim()).toMatch(expected)
  })
})

test('a model whose chat template does not support tools returns 400 for them', async () => {
  const app = await startApp(localEnvironment(writeModelFile({ chatTemplate: chatMl })))
  const { status, body } = await app.call('POST', CHAT, { body: greedy('Hi', { tools }) })
  expect(status).toBe(400)
  expect(body.error).toMatchObject({ param: 'tools', message: expect.stringContaining('chat template') })
  const without = await app.call('POST', CHAT, {
    body: greedy('Hi', { tools, tool_choice: 'none', max_tokens: 2 }),
  })
  expect(without.status).toBe(200)
})
