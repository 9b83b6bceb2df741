/** Tests agent turns in which the model calls tools, including tools that the agent does not have. */
import { describe, expect, test } from 'vitest'
import type { StreamedAnswer, TestApp } from '../../support/app.ts'
import { chatRequest, startChatHarness } from '../../support/chat-harness.ts'

const harness = await startChatHarness()
const path = '/v1/chat/completions'
const AGENT = 'name: A\ninstructions: B\ntools: [search, open]\n'

async function startAgent(env = {}): Promise<{ app: TestApp; key: string }> {
  const app = await harness.start(env)
  return { app, key: (await app.createAgent(AGENT)).agent_key }
}

async function lastMessages(): Promise<unknown[]> {
  const [last] = (await harness.listChats()).slice(-1) as { body: { messages: unknown[] } }[]
  return last?.body.messages ?? []
}

/** Joins the deltas of each choice in a stream, as a client does. */
function joinChoices({ events }: Pick<StreamedAnswer, 'events'>) {
  const choices = events.flatMap((chunk) => chunk.choices)
  return {
    roles: choices.map(({ delta }) => delta.role).filter((role) => role !== undefined),
    content: choices.map(({ delta }) => delta.content ?? '').join(''),
    calls: choices.flatMap(({ delta }) => delta.tool_calls ?? []),
    finishes: choices.map((choice) => choice.finish_reason).filter((reason) => reason !== null),
  }
}

function call(name: string, index = 0) {
  return { index, id: `call_${name}`, type: 'function', function: { name, arguments: '{"q":1}' } }
}

const names = { id: 'chatcmpl-x', object: 'chat.completion.chunk', created: 1, model: 'up-chat' }
const usage = { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 }

function streamOf(tool_calls: object[], content = 'Hm. '): object[] {
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    ...names,
    choices: [{ index: 0, delta, finish_reason }],
  })
  return [
    chunk({ role: 'assistant', content: '' }),
    chunk({ content }),
    ...tool_calls.map((each) => chunk({ tool_calls: [each] })),
    chunk({}, 'tool_calls'),
    { ...names, choices: [], usage },
  ]
}

function completionOf(tool_calls: object[], content: string | null = 'Hm. '): object {
  const message = { role: 'assistant', content, tool_calls }
  return {
    ...names,
    object: 'chat.completion',
    choices: [{ index: 0, message, finish_reason: 'tool_calls' }],
    usage,
  }
}

const unknownToolError = (name: string) => `Error: there is no tool '${name}' here. Answer without it.`

describe('a call to a tool that the agent does not have', () => {
  test('returns an error to the model, and the caller still receives a single stream', async () => {
    const { app, key } = await startAgent()
    await harness.answerWith(streamOf([call('drop')]), 1)
    const answer = await app.stream(chatRequest('hello'), key)
    expect(joinChoices(answer)).toEqual({
      roles: ['assistant'],
      content: `Hm. Tool said: ${unknownToolError('drop')}`,
      calls: [],
      finishes: ['stop'],
    })
    expect(answer.events.at(-1)).toMatchObject({ choices: [{ delta: {}, finish_reason: 'stop' }] })
    expect(new Set(answer.events.map(({ id, created, model }) => `${id} ${created} ${model}`)).size).toBe(1)
    expect(answer.isDone).toBe(true)
    expect(answer.headers.get('x-parley-attempts')).toBe('1')
    const { index: _, ...rejectedCall } = call('drop')
    expect(await lastMessages()).toEqual([
      { role: 'system', content: 'B' },
      { role: 'user', content: 'hello' },
      { role: 'assistant', content: 'Hm. ', tool_calls: [rejectedCall] },
      { role: 'tool', tool_call_id: 'call_drop', content: unknownToolError('drop') },
    ])
  })

  test('returns an error to the model if the response is not streamed', async () => {
    const { app, key } = await startAgent()
    await harness.answerWith(completionOf([call('drop')]), 1)
    const { body } = await app.call('POST', path, { key, body: chatRequest('hello') })
    expect(body.choices).toEqual([
      {
        index: 0,
        message: { role: 'assistant', content: `Hm. Tool said: ${unknownToolError('drop')}` },
        finish_reason: 'stop',
      },
    ])
    expect(await lastMessages()).toHaveLength(4)
  })

  test('prevents valid calls in the same response from reaching the caller', async () => {
    const { app, key } = await startAgent()
    await harness.answerWith(streamOf([call('search'), call('drop', 1)], ''), 1)
    const answer = await app.stream(chatRequest('hello'), key)
    expect(joinChoices(answer)).toMatchObject({
      content: `Tool said: ${unknownToolError('drop')}`,
      calls: [],
      finishes: ['stop'],
    })
    expect((await lastMessages()).slice(2)).toEqual([
      { role: 'assistant', content: null, tool_calls: [expect.objectContaining({ id: 'call_drop' })] },
      { role: 'tool', tool_call_id: 'call_drop', content: unknownToolError('drop') },
    ])
  })

  test.each([true, false])(
    'ends the turn with finish reason stop after eight model calls (stream: %s)',
    async (stream) => {
      const { app, key } = await startAgent()
      await harness.answerWith(stream ? streamOf([call('drop')]) : completionOf([call('drop')]))
      const answer = stream
        ? await app.stream(chatRequest('hello'), key)
        : await app.call('POST', path, { key, body: chatRequest('hello') })
      const { content, finishes, calls } = stream
        ? joinChoices(answer as StreamedAnswer)
        : { ...answer.body.choices[0].message, finishes: [answer.body.choices[0].finish_reason], calls: [] }
      expect({ content, finishes, calls }).toEqual({
        content: 'Hm. '.repeat(8),
        finishes: ['stop'],
        calls: [],
      })
      expect(await harness.listChats()).toHaveLength(8)
    },
  )

  test.each([true, false])(
    'is removed from the response without another model call if there are several choices (stream: %s)',
    async (stream) => {
      const { app, key } = await startAgent()
      const script = '{{up:tool drop {}}}{{up:tool search {"q":2}}}'
      if (stream) {
        const { finishes, calls } = joinChoices(await app.stream(chatRequest(script, { n: 2 }), key))
        expect(finishes).toEqual(['tool_calls', 'tool_calls'])
        expect(calls.map((each) => [each.index, each.function.name])).toEqual([
          [0, 'search'],
          [0, 'search'],
        ])
      } else {
        const { body } = await app.call('POST', path, { key, body: chatRequest(script, { n: 2 }) })
        for (const { message, finish_reason } of body.choices) {
          expect(message.tool_calls).toMatchObject([{ function: { name: 'search', arguments: '{"q":2}' } }])
          expect(finish_reason).toBe('tool_calls')
        }
      }
      expect(await harness.listChats()).toHaveLength(1)
    },
  )
})

describe('a call to a tool that the agent has', () => {
  test('is sent to the caller in a single chunk', async () => {
    const { app, key } = await startAgent()
    const script = '{{up:tool search {"query":"a long enough text"}}}{{up:tool open {}}}'
    const { roles, calls, finishes } = joinChoices(await app.stream(chatRequest(script), key))
    expect(roles).toEqual(['assistant'])
    expect(calls).toEqual([
      {
        index: 0,
        id: 'call_0',
        type: 'function',
        function: { name: 'search', arguments: '{"query":"a long enough text"}' },
      },
      { index: 1, id: 'call_1', type: 'function', function: { name: 'open', arguments: '{}' } },
    ])
    expect(finishes).toEqual(['tool_calls'])
    const whole = await app.call('POST', path, { key, body: chatRequest(script) })
    expect(whole.body.choices).toMatchObject([
      {
        message: { content: null, tool_calls: calls.map(({ index: _, ...rest }) => rest) },
        finish_reason: 'tool_calls',
      },
    ])
  })
})

describe('the usage of a turn with several model calls', () => {
  test('is totaled in a single chunk of a stream', async () => {
    const { app, key } = await startAgent()
    await harness.answerWith(streamOf([call('drop')]))
    const { events } = await app.stream(
      chatRequest('hello', { stream_options: { include_usage: true } }),
      key,
    )
    expect(events.filter((chunk) => chunk.usage)).toEqual([
      {
        ...names,
        choices: [],
        usage: { prompt_tokens: 80, completion_tokens: 16, total_tokens: 96 },
      },
    ])
  })

  test('is totaled in a complete response', async () => {
    const { app, key } = await startAgent()
    await harness.answerWith(completionOf([call('drop')]))
    const { body } = await app.call('POST', path, { key, body: chatRequest('hello') })
    expect(body.usage).toEqual({ prompt_tokens: 80, completion_tokens: 16, total_tokens: 96 })
  })
})

describe('a failed model call after the first', () => {
  test.each([
    ['stream', streamOf([call('drop')])],
    ['complete response', completionOf([call('drop')])],
  ])('ends the turn with an error (%s)', async (_how, first) => {
    const { app, key } = await startAgent({ PARLEY_BACKEND_ATTEMPTS: '1' })
    await harness.answerWith(first, 1)
    const request = chatRequest('{{up:status 500}}')
    if (Array.isArray(first)) {
      const { events, isDone } = await app.stream(request, key)
      expect(events.at(-1)).toMatchObject({ error: { type: 'upstream_error', code: 'stream_interrupted' } })
      expect(isDone).toBe(false)
    } else {
      expect(await app.call('POST', path, { key, body: request })).toMatchObject({ status: 502 })
    }
  })

  test('is retried like a failed first call', async () => {
    const { app, key } = await startAgent({ PARLEY_BACKEND_ATTEMPTS: '2' })
    await harness.answerWith(streamOf([call('drop')]), 1)
    const answer = await app.stream(chatRequest('{{up:status 500}}{{up:first 1}}'), key)
    expect(joinChoices(answer)).toMatchObject({ roles: ['assistant'], finishes: ['stop'] })
    expect(await harness.listChats()).toHaveLength(3)
  })
})
