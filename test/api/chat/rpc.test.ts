/** Tests that chat streams have the same chunks and errors over tRPC as over REST. */
import { describe, expect, test } from 'vitest'
import type { ChatChunk, ChatRequest } from '../../../src/providers/chat-api.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { chatRequest, startChatHarness } from '../../support/chat-harness.ts'
import { createTypedClient } from '../../support/rpc.ts'

const harness = await startChatHarness()

async function stream(app: TestApp, request: object, key?: string) {
  const runs: ChatChunk[][] = []
  try {
    const answer = await createTypedClient(app, key).chat.stream.mutate(request as ChatRequest)
    for await (const chunks of answer) runs.push(chunks)
    return { runs, failure: undefined }
  } catch (failure) {
    return { runs, failure }
  }
}

describe('a tRPC stream', () => {
  test.each([
    ['text', 'one two three', {}],
    ['a tool call', '{{up:tool f {"x":1}}}', {}],
    ['several choices', '{{up:cut 2}}', { n: 2 }],
    ['comments', '{{up:comments}}', {}],
    ['usage', 'a', { stream_options: { include_usage: true } }],
  ])('yields the same chunks as REST: %s', async (_what, text, more) => {
    const app = await harness.start()
    const { runs, failure } = await stream(app, chatRequest(text, more))
    expect(failure).toBe(undefined)
    expect(runs.every((chunks) => chunks.length > 0)).toBe(true)
    expect(runs.flat()).toEqual((await app.stream(chatRequest(text, more))).events)
  })

  test('yields the same text as a complete response from the same agent', async () => {
    const app = await startApp()
    const { agent_key } = await app.createAgent()
    const request = { messages: [{ role: 'user', content: 'Hello, wörld! 🎈' }], seed: 1 }
    const { runs } = await stream(app, request, agent_key)
    const whole = await app.call('POST', '/v1/chat/completions', { key: agent_key, body: request })
    const text = runs.flat().map(({ choices }) => choices[0]?.delta.content ?? '')
    expect(text.join('')).toBe(whole.body.choices[0].message.content)
  })

  test('aborts the backend request when the client aborts it', async () => {
    const app = await harness.start()
    const controller = new AbortController()
    const chat = createTypedClient(app).chat
    const answer = await chat.stream.mutate(chatRequest('{{up:hang-after 2}}') as ChatRequest, {
      signal: controller.signal,
    })
    for await (const _ of answer) break
    controller.abort()
    const { id } = await harness.upstream.waitForRequest('hang-after')
    expect((await harness.upstream.waitForEnd(id)).endedBy).toBe('client')
  })
})

describe('a tRPC stream fails', () => {
  test.each([
    ['for an invalid field', { messages: [] }, 'invalid_value', 'messages'],
    ['for a model that does not exist', { model: 'gone' }, 'model_not_found', 'model'],
    ['if the backend rejects the key', chatRequest('{{up:status 401}}'), 'backend_error', null],
    ['if the backend rejects the request', chatRequest('{{up:status 400}}'), 'invalid_value', null],
    [
      'if the backend is rate-limited',
      chatRequest('{{up:status 429}}{{up:retry-after 60}}'),
      'rate_limit_exceeded',
      null,
    ],
    ['if the backend closes the connection', chatRequest('{{up:close}}'), 'backend_unavailable', null],
  ])('%s', async (_how, change, reason, param) => {
    const app = await harness.start()
    const { runs, failure } = await stream(app, { ...chatRequest('hello'), ...change })
    expect(runs).toEqual([])
    expect(failure).toMatchObject({ data: { reason, param, path: 'chat.stream' } })
  })

  test('midway after the client has received some chunks', async () => {
    const app = await harness.start()
    const { runs, failure } = await stream(app, chatRequest('a b {{up:cut-off 3}}'))
    expect(runs.flat()).toHaveLength(3)
    expect(failure).toMatchObject({
      message: 'The model provider failed before completing its response.',
      data: { reason: 'backend_error', code: 'stream_interrupted' },
    })
  })
})
