/** Tests which fields, output items and usage a response has if it is not streamed. */
import { describe, expect, test } from 'vitest'
import { startApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { RESPONSES, respond } from '../../support/responses.ts'
import { totalUsage } from '../../support/usage.ts'

const harness = await startChatHarness()

const weather = {
  type: 'function',
  name: 'weather',
  description: null,
  parameters: { type: 'object' },
  strict: false,
}

function completion(message: object, finish_reason = 'stop', more: object = {}): object {
  return {
    id: 'chatcmpl-x',
    object: 'chat.completion',
    created: 1,
    model: 'up-chat',
    choices: [{ index: 0, message: { role: 'assistant', content: null, ...message }, finish_reason }],
    usage: { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 },
    ...more,
  }
}

const said = (text: string, status = 'completed') => ({
  type: 'message',
  id: expect.stringMatching(/^msg_\w{24}$/),
  status,
  role: 'assistant',
  content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
})

const called = (name: string, text: string, call_id: string, status = 'completed') => ({
  type: 'function_call',
  id: expect.stringMatching(/^fc_\w{24}$/),
  status,
  call_id,
  name,
  arguments: text,
})

describe('a response', () => {
  test('includes every field, even those with default values', async () => {
    const app = await startApp({}, { clock: createFakeClock(1_800_000_000) })
    const { status, body } = await respond(app, { input: 'hello' })
    expect(status).toBe(200)
    expect(body).toEqual({
      id: expect.stringMatching(/^resp_\w{24}$/),
      object: 'response',
      created_at: 1_800_000_000,
      completed_at: 1_800_000_000,
      status: 'completed',
      error: null,
      incomplete_details: null,
      model: 'mock',
      output: [said('You said: hello')],
      usage: {
        input_tokens: 2,
        input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
        output_tokens: 3,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 5,
      },
      service_tier: 'default',
      instructions: null,
      tools: [],
      tool_choice: 'auto',
      parallel_tool_calls: true,
      max_tool_calls: null,
      temperature: 1,
      top_p: 1,
      presence_penalty: 0,
      frequency_penalty: 0,
      max_output_tokens: null,
      text: { format: { type: 'text' } },
      reasoning: { effort: null, summary: null },
      top_logprobs: 0,
      metadata: {},
      safety_identifier: null,
      prompt_cache_key: null,
      store: false,
      background: false,
      truncation: 'disabled',
      previous_response_id: null,
      conversation: null,
      prompt: null,
      access_programs: null,
    })
  })

  test('repeats the fields of the request except those that the server does not support', async () => {
    const app = await startApp()
    const asked = {
      instructions: 'Be brief.',
      tools: [weather],
      tool_choice: { type: 'function', name: 'weather' },
      parallel_tool_calls: false,
      max_tool_calls: 3,
      temperature: 0.5,
      top_p: 0.9,
      max_output_tokens: 100,
      text: { format: { type: 'json_object' }, verbosity: 'low' },
      reasoning: { effort: 'low', summary: 'auto' },
      top_logprobs: 2,
      metadata: { a: 'b' },
      user: 'u',
      safety_identifier: 's',
      prompt_cache_key: 'k',
      service_tier: 'flex',
    }
    const { body } = await respond(app, { input: 'hello', store: true, truncation: 'auto', ...asked })
    expect(body).toMatchObject({ ...asked, store: false, truncation: 'disabled' })
  })

  test('includes the provider in its headers and is recorded once in usage', async () => {
    const app = await startApp()
    const { headers } = await respond(app, { input: 'hello' })
    expect(headers.get('x-parley-provider')).toBe('mock')
    expect(headers.get('x-parley-attempts')).toBe('1')
    expect(headers.get('x-parley-fallback')).toBe('false')
    expect(headers.get('x-ratelimit-remaining')).toMatch(/^\d+$/)
    expect(await totalUsage(app)).toMatchObject({ requests: 1, prompt_tokens: 2, completion_tokens: 3 })
  })

  test('is not stored if the request does not name an agent, even with `store: true`', async () => {
    const app = await startApp()
    const { body } = await respond(app, { input: 'hello', store: true })
    expect(await app.call('GET', RESPONSES)).toMatchObject({ status: 405 })
    expect(await app.call('GET', `${RESPONSES}/${body.id}`)).toMatchObject({
      status: 404,
      body: { error: { code: 'not_found' } },
    })
  })
})

describe("a response's output", () => {
  const output = async (message: object, finish?: string, more?: object, request: object = {}) => {
    const app = await harness.start()
    await harness.answerWith(completion(message, finish, more))
    return (await respond(app, { input: 'x', ...request })).body
  }
  const call = (name: string, id: string) => ({
    id,
    type: 'function',
    function: { name, arguments: '{"a":1}' },
  })

  test.each(['reasoning_content', 'reasoning'])(
    'starts with the reasoning from the provider (%s)',
    async (field) => {
      const body = await output({ [field]: 'Hm.', content: 'Yes.' })
      expect(body.output).toEqual([
        {
          type: 'reasoning',
          id: expect.stringMatching(/^rs_\w{24}$/),
          status: 'completed',
          summary: [],
          content: [{ type: 'reasoning_text', text: 'Hm.' }],
        },
        said('Yes.'),
      ])
    },
  )

  test('includes every tool call but no message if there is no text', async () => {
    const body = await output({ tool_calls: [call('f', 'call_1'), call('g', 'call_2')] }, 'tool_calls')
    expect(body.output).toEqual([called('f', '{"a":1}', 'call_1'), called('g', '{"a":1}', 'call_2')])
    expect(body.status).toBe('completed')
  })

  test('includes the text before a tool call', async () => {
    const body = await output({ content: 'Wait.', tool_calls: [call('f', 'call_1')] }, 'tool_calls')
    expect(body.output).toEqual([said('Wait.'), called('f', '{"a":1}', 'call_1')])
  })

  test('includes an empty message if the provider returns no content', async () => {
    expect((await output({})).output).toEqual([said('')])
    expect((await output({ reasoning: 'Hm.' })).output.at(-1)).toEqual(said(''))
  })

  test('includes a part of type refusal if the model refuses', async () => {
    const { output: items } = await output({ refusal: 'No.' })
    expect(items).toMatchObject([{ type: 'message', content: [{ type: 'refusal', refusal: 'No.' }] }])
  })

  test.each([
    ['length', 'max_output_tokens'],
    ['content_filter', 'content_filter'],
  ])('is marked as incomplete after the finish reason %s', async (finish, reason) => {
    const body = await output({ content: 'Once upon' }, finish)
    expect(body).toMatchObject({ status: 'incomplete', completed_at: null, incomplete_details: { reason } })
    expect(body.output).toEqual([said('Once upon', 'incomplete')])
    expect((await output({ reasoning: 'Hm' }, finish)).output).toMatchObject([{ status: 'incomplete' }])
    const cut = await output({ content: 'A', tool_calls: [call('f', 'call_1')] }, finish)
    expect(cut.output).toEqual([said('A'), called('f', '{"a":1}', 'call_1', 'incomplete')])
  })

  test('includes log probabilities on request', async () => {
    const token = (text: string) => ({ token: text, logprob: -0.5 })
    const message = { role: 'assistant', content: 'Hi' }
    const logprobs = {
      content: [{ ...token('Hi'), bytes: null, top_logprobs: [{ ...token('Ho'), bytes: [1] }] }],
    }
    const choices = [{ index: 0, message, finish_reason: 'stop', logprobs }]
    const body = await output({}, 'stop', { choices }, { top_logprobs: 1 })
    expect(body.output[0].content[0].logprobs).toEqual([
      { ...token('Hi'), bytes: [], top_logprobs: [{ ...token('Ho'), bytes: [1] }] },
    ])
  })

  test('is returned with usage in the fields of the Responses API', async () => {
    const usage = {
      prompt_tokens: 10,
      completion_tokens: 4,
      total_tokens: 14,
      prompt_tokens_details: { cached_tokens: 8 },
      completion_tokens_details: { reasoning_tokens: 3 },
    }
    const body = await output({ content: 'A' }, 'stop', { usage, service_tier: 'default' })
    expect(body.usage).toEqual({
      input_tokens: 10,
      input_tokens_details: { cached_tokens: 8, cache_write_tokens: 0 },
      output_tokens: 4,
      output_tokens_details: { reasoning_tokens: 3 },
      total_tokens: 14,
    })
    expect(body.service_tier).toBe('default')
  })
})

test('POST /v1/responses requires a key', async () => {
  const app = await startApp()
  const answer = await app.call('POST', RESPONSES, { key: null, body: { input: 'hello' } })
  expect(answer).toMatchObject({ status: 401, body: { error: { code: 'missing_api_key' } } })
})
