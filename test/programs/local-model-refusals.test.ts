/** Tests requests that an in-process model rejects, and its embeddings. */
import { describe, expect, test, vi } from 'vitest'
import { startApp } from '../support/app.ts'
import { greedy, localEnvironment, startLocalModelHarness, writeModelFile } from '../support/local-model.ts'

// Models are slow on a busy machine.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const harness = startLocalModelHarness()
const CHAT = '/v1/chat/completions'
const EMBEDDINGS = '/v1/embeddings'

const hello = { role: 'user', content: 'Hi' }
const call = (given: string) => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'a', type: 'function', function: { name: 'wait', arguments: given } }],
})
const part = (type: string, more: object) => ({ role: 'user', content: [{ type, ...more }] })
const tool = (parameters: object) => ({ type: 'function', function: { name: 'wait', parameters } })
const schema = (value: object) => ({
  response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: value } },
})
const loop = { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/a' } } }
const large = { enum: Array.from({ length: 2001 }, (_, value) => value) }

describe('a chat completion request to an in-process model returns 400 for', () => {
  test.each<[what: string, body: object, param: string]>([
    [
      'an image',
      { messages: [hello, part('image_url', { image_url: { url: 'data:,' } })] },
      'messages[1].content[0]',
    ],
    ['audio', { messages: [part('input_audio', { input_audio: {} })] }, 'messages[0].content[0]'],
    ['a file', { messages: [part('file', { file: {} })] }, 'messages[0].content[0]'],
    ['a function message', { messages: [{ role: 'function', name: 'f', content: '1' }] }, 'messages[0].role'],
    [
      'a tool result without a call',
      { messages: [hello, { role: 'tool', tool_call_id: 'b', content: '1' }] },
      'messages[1].tool_call_id',
    ],
    [
      'arguments that are not JSON',
      { messages: [hello, call('{'), { role: 'tool', tool_call_id: 'a', content: '1' }] },
      'messages[1].tool_calls[0].function.arguments',
    ],
    ['several choices', { n: 2 }, 'n'],
    ['log probabilities', { logprobs: true }, 'logprobs'],
    [
      'a tool choice that names a tool that is not offered',
      { tools: [tool({})], tool_choice: { type: 'function', function: { name: 'x' } } },
      'tool_choice',
    ],
    [
      'a tool choice of an unknown type',
      { tools: [tool({})], tool_choice: { type: 'custom', custom: { name: 'x' } } },
      'tool_choice',
    ],
    [
      'tools together with a response format',
      { tools: [tool({})], response_format: { type: 'json_object' } },
      'response_format',
    ],
    ['an unsupported response format', { response_format: { type: 'grammar' } }, 'response_format.type'],
    ['a circular schema', schema(loop), 'response_format'],
    ['a schema that is too large', schema(large), 'response_format'],
    ['a schema with a NUL', schema({ enum: ['\0'] }), 'response_format'],
    ['a schema with a backspace', schema({ properties: { '\b': {} } }), 'response_format'],
    ['a tool schema that is too large', { tools: [tool({ properties: { a: large } })] }, 'tools'],
    [
      'a circular tool schema',
      {
        tools: [tool({ properties: { a: { $ref: loop.$ref } }, $defs: loop.$defs })],
        tool_choice: 'required',
      },
      'tools',
    ],
  ])('%s', async (_what, body, param) => {
    const request = { ...greedy('Hi', { max_tokens: 400 }), ...body }
    for (const stream of [false, true]) {
      const answer = await harness.app.call('POST', CHAT, { body: { ...request, stream } })
      expect({ status: answer.status, error: answer.body?.error }).toMatchObject({
        status: 400,
        error: { type: 'invalid_request_error', param, code: 'invalid_value' },
      })
      expect(answer.body.error.message.startsWith(`${param}: `)).toBe(true)
    }
  })

  test.each([
    ['a prompt longer than the context', 2100],
    ['a prompt so long that its tokens are not counted', 100_000],
  ])('%s', async (_what, length) => {
    const { status, body } = await harness.app.call('POST', CHAT, { body: greedy('x'.repeat(length)) })
    expect(status).toBe(400)
    expect(body.error).toMatchObject({ param: 'messages', code: 'context_length_exceeded' })
  })
})

test('a response stops when the context is full', async () => {
  const app = await startApp({
    ...localEnvironment(writeModelFile({ brevity: -100 })),
    PARLEY_LOCAL_CONTEXT: '300',
  })
  const { body } = await app.call('POST', CHAT, { body: greedy('Hi') })
  expect(body.choices[0].finish_reason).toBe('length')
  expect(body.usage.total_tokens).toBe(299)
})

describe('embeddings from an in-process model', () => {
  const embed = (body: object) => harness.app.call('POST', EMBEDDINGS, { body })

  test('are unit vectors and are equal for equal inputs', async () => {
    const { status, body } = await embed({ input: ['Hello', 'Good evening', 'Hello'] })
    expect({ status, model: body.model }).toEqual({ status: 200, model: 'tiny' })
    const vectors: number[][] = body.data.map(({ embedding }: { embedding: number[] }) => embedding)
    expect(vectors.map((vector) => vector.length)).toEqual([64, 64, 64])
    for (const vector of vectors) expect(Math.hypot(...vector)).toBeCloseTo(1, 5)
    expect(vectors[2]).toEqual(vectors[0])
    expect(vectors[1]).not.toEqual(vectors[0])
    expect(body.usage).toEqual({ prompt_tokens: 22, total_tokens: 22 })
  })

  test('are the same for a list of tokens as for the text', async () => {
    const [text] = (await embed({ input: 'Hi' })).body.data
    // The vocabulary starts with <unk>, <s> and </s>, followed by one token for each byte.
    const tokens = [...Buffer.from('Hi')].map((byte) => byte + 3)
    for (const input of [tokens, [tokens]]) expect((await embed({ input })).body.data).toEqual([text])
  })

  test('are encoded as base64 on request', async () => {
    const [plain] = (await embed({ input: 'Hi' })).body.data
    const [encoded] = (await embed({ input: 'Hi', encoding_format: 'base64' })).body.data
    const bytes = Buffer.from(encoded.embedding, 'base64')
    expect(Array.from({ length: 64 }, (_, place) => bytes.readFloatLE(4 * place))).toEqual(plain.embedding)
  })

  test("can be requested with the model's number of dimensions", async () => {
    expect((await embed({ input: 'Hi', dimensions: 64 })).status).toBe(200)
  })

  test.each<[what: string, body: object, error: object]>([
    [
      'a different number of dimensions',
      { input: 'Hi', dimensions: 32 },
      { param: 'dimensions', code: 'invalid_value' },
    ],
    ['unknown tokens', { input: [1, 999] }, { param: 'input', code: 'invalid_value' }],
    ['unknown tokens in a list', { input: [[1], [999]] }, { param: 'input[1]', code: 'invalid_value' }],
    [
      'text longer than the context',
      { input: 'x'.repeat(2048) },
      { param: 'input', code: 'context_length_exceeded' },
    ],
    [
      'text much longer than the context',
      { input: ['x', 'x'.repeat(100_000)] },
      { param: 'input[1]', code: 'context_length_exceeded' },
    ],
  ])('are rejected with 400 for %s', async (_what, request, error) => {
    const { status, body } = await embed(request)
    expect({ status, error: body.error }).toMatchObject({ status: 400, error })
  })

  test('can be created by an embedding model, which rejects chat completions', async () => {
    const app = await startApp(localEnvironment(writeModelFile({ poolingType: 1 })))
    expect((await app.call('POST', EMBEDDINGS, { body: { input: 'Hi' } })).status).toBe(200)
    const { status, body } = await app.call('POST', CHAT, { body: { ...greedy('Hi'), model: 'tiny' } })
    expect({ status, param: body.error.param }).toEqual({ status: 400, param: 'model' })
  })
})
