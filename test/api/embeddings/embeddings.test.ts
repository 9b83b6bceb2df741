/** Tests the embeddings API and which requests it accepts. */
import { describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { callProcedure } from '../../support/rpc.ts'

const path = '/v1/embeddings'
const model = 'mock-embedding'

function embed(app: TestApp, body: object, key?: string) {
  return app.call('POST', path, { body, ...(key !== undefined && { key }) })
}

function decode(text: string): number[] {
  const bytes = Buffer.from(text, 'base64')
  return Array.from({ length: bytes.length / 4 }, (_, place) => bytes.readFloatLE(4 * place))
}

describe('embeddings through the official client', () => {
  test('contain one vector for each text, in order', async () => {
    const client = (await startApp()).openai()
    const input = ['the first text', 'another one', 'the first text']
    const { data, ...rest } = await client.embeddings.create({ model, input })
    expect(rest).toEqual({ object: 'list', model, usage: { prompt_tokens: 8, total_tokens: 8 } })
    expect(data.map(({ index, object }) => [index, object])).toEqual([0, 1, 2].map((at) => [at, 'embedding']))
    const [first, second, third] = data.map(({ embedding }) => [...embedding])
    expect(first).toHaveLength(1536)
    expect(third).toEqual(first)
    expect(second).not.toEqual(first)
  })

  test('are numerically equal in every encoding', async () => {
    const client = (await startApp()).openai()
    const request = { model, input: 'a text', dimensions: 64 }
    const [silent] = (await client.embeddings.create(request)).data
    const [float] = (await client.embeddings.create({ ...request, encoding_format: 'float' })).data
    const [base64] = (await client.embeddings.create({ ...request, encoding_format: 'base64' })).data
    expect(float?.embedding).toHaveLength(64)
    expect([...(silent?.embedding ?? [])]).toEqual(float?.embedding)
    expect(decode(String(base64?.embedding))).toEqual(float?.embedding)
  })
})

describe('an embedding', () => {
  test('is a list of numbers unless base64 is requested', async () => {
    const app = await startApp()
    const plain = await embed(app, { model, input: 'a' })
    const float = await embed(app, { model, input: 'a', encoding_format: 'float' })
    const base64 = await embed(app, { model, input: 'a', encoding_format: 'base64' })
    expect(plain.body.data[0].embedding).toHaveLength(1536)
    expect(float.body).toEqual(plain.body)
    expect(decode(base64.body.data[0].embedding)).toEqual(plain.body.data[0].embedding)
  })

  test("is returned with the provider's name in a header", async () => {
    const { headers } = await embed(await startApp(), { model, input: 'a' })
    expect(headers.get('x-parley-provider')).toBe('mock')
    expect(headers.get('x-parley-attempts')).toBe('1')
    expect(headers.get('content-type')).toMatch(/^application\/json/)
  })

  test('is the same over tRPC', async () => {
    const app = await startApp()
    const request = { model, input: ['a', 'b'], dimensions: 4 }
    const { body } = await embed(app, request)
    const { status, text } = await callProcedure(app, 'embeddings.create', request)
    expect([status, JSON.parse(text).result.data.json]).toEqual([200, body])
  })
})

describe('the embedding model', () => {
  test.each([
    ['the one in the request', { model }],
    ['the one in the request, with its provider prefix', { model: `mock/${model}` }],
    ["the backend's first embedding model if the request names none", {}],
    ["the backend's first embedding model if the request sets `model` to null", { model: null }],
  ])('is %s', async (_which, named) => {
    const { status, body } = await embed(await startApp(), { input: 'a', ...named })
    expect([status, body.model]).toEqual([200, model])
  })

  test("is the operator's default if the request does not specify one", async () => {
    const app = await startApp({ PARLEY_DEFAULT_EMBEDDING_MODEL: 'mock/mock' })
    expect((await embed(app, { input: 'a' })).body.model).toBe('mock')
    expect((await embed(app, { input: 'a', model })).body.model).toBe(model)
  })

  test.each(['none', 'mock/none', 'agent/x', '__proto__'])(
    'is rejected with 404 if it is %s',
    async (unknown) => {
      const answer = await embed(await startApp(), { model: unknown, input: 'a' })
      const error = { type: 'invalid_request_error', code: 'model_not_found', param: 'model' }
      expect(answer).toMatchObject({ status: 404, body: { error } })
    },
  )
})

describe('an embeddings request', () => {
  test('returns 403 with an agent key', async () => {
    const app = await startApp()
    const { agent_key } = await app.createAgent()
    const error = { type: 'permission_error', code: 'insufficient_permissions' }
    expect(await embed(app, { model, input: 'a' }, agent_key)).toMatchObject({ status: 403, body: { error } })
  })

  test('returns 401 without a key', async () => {
    const answer = await (await startApp()).call('POST', path, { key: null, body: { model, input: 'a' } })
    expect(answer).toMatchObject({ status: 401, body: { error: { code: 'missing_api_key' } } })
  })
})

describe('an embeddings request is accepted', () => {
  test.each<[string, object, number]>([
    ['with one text', { input: 'a' }, 1],
    ['with a text of spaces', { input: ' ' }, 1],
    ['with a list of one text', { input: ['a'] }, 1],
    ['with tokens', { input: [1, 2, 3] }, 1],
    ['with token arrays', { input: [[1, 2], [3], [0]] }, 3],
    ['with the maximum number of texts', { input: Array(2048).fill('a'), dimensions: 1 }, 2048],
    ['with the largest text', { input: 'é'.repeat(1024 * 1024) }, 1],
    ['with null for optional fields', { input: 'a', dimensions: null, encoding_format: null, user: null }, 1],
    ['with unknown fields', { input: 'a', input_type: 'query', truncate: { at: 1 } }, 1],
  ])('%s', async (_what, request, count) => {
    const { status, body } = await embed(await startApp(), { model, ...request })
    expect(status).toBe(200)
    expect(body.data.map(({ index }: { index: number }) => index)).toEqual([...Array(count).keys()])
  })
})

describe('an embeddings request is rejected', () => {
  test.each<[string, object, string]>([
    ['without input', {}, 'input'],
    ['with null', { input: null }, 'input'],
    ['with a number', { input: 5 }, 'input'],
    ['with an object', { input: {} }, 'input'],
    ['with an empty string', { input: '' }, 'input'],
    ['with an empty list', { input: [] }, 'input'],
    ['with an empty string in a list', { input: ['a', ''] }, 'input[1]'],
    ['with a number in a list of texts', { input: ['a', 1] }, 'input[1]'],
    ['with an empty token array', { input: [[]] }, 'input[0]'],
    ['with a fractional token', { input: [[1, 2.5]] }, 'input[0][1]'],
    ['with a negative token', { input: [[1], [-1]] }, 'input[1][0]'],
    ['with too many texts', { input: Array(2049).fill('a') }, 'input'],
    ['with too many tokens', { input: Array(2049).fill(1) }, 'input'],
    ['with a text that is too large', { input: `${'é'.repeat(1024 * 1024)}e` }, 'input'],
    ['with texts that are too large in total', { input: Array(2048).fill('a'.repeat(1025)) }, 'input'],
    ['with token arrays that are too large in total', { input: [Array(2 ** 19).fill(1), [1]] }, 'input'],
    ['with zero dimensions', { input: 'a', dimensions: 0 }, 'dimensions'],
    ['with fractional dimensions', { input: 'a', dimensions: 1.5 }, 'dimensions'],
    ['with dimensions in a string', { input: 'a', dimensions: '8' }, 'dimensions'],
    ['with more dimensions than the model supports', { input: 'a', dimensions: 3073 }, 'dimensions'],
    ['with an unknown encoding', { input: 'a', encoding_format: 'int8' }, 'encoding_format'],
    ['with a user that is not a string', { input: 'a', user: 5 }, 'user'],
    ['with a model that is not a string', { input: 'a', model: 5 }, 'model'],
  ])('%s', async (_what, request, param) => {
    const answer = await embed(await startApp(), { model, ...request })
    const error = { type: 'invalid_request_error', code: 'invalid_value', param }
    expect(answer).toMatchObject({ status: 400, body: { error } })
    expect(answer.body.error.message).toMatch(/^\S+: /)
  })

  test('with a body that exceeds the limit', async () => {
    const app = await startApp({ PARLEY_MAX_BODY_BYTES: '2048' })
    expect((await embed(app, { model, input: 'a'.repeat(1900) })).status).toBe(200)
    const answer = await embed(app, { model, input: 'a'.repeat(2048) })
    expect(answer).toMatchObject({ status: 413, body: { error: { code: 'too_large' } } })
  })
})
