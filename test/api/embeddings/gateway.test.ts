/** Tests how embeddings requests and responses pass through a gateway. */
import { describe, expect, test } from 'vitest'
import type { Answer, TestApp } from '../../support/app.ts'
import { PROVIDER_KEY, startChatHarness } from '../../support/chat-harness.ts'

const harness = await startChatHarness()
const path = '/v1/embeddings'
const model = 'up-embedding'

function embed(app: TestApp, input: unknown, more: object = {}): Promise<Answer> {
  return app.call('POST', path, { body: { model, input, ...more } })
}

async function listBackendRequests(): Promise<unknown[]> {
  return (await harness.upstream.listRequests()).filter((seen) => seen.path === path).map(({ body }) => body)
}

function answerWith(body: unknown): Promise<void> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return harness.upstream.script(path, `{{up:body ${text}}}`)
}

async function readDirectly(body: object): Promise<string> {
  return (await fetch(harness.upstream.origin + path, { method: 'POST', body: JSON.stringify(body) })).text()
}

const vectors = [
  [0.5, -0.25],
  [1, 0],
]
const encoded = vectors.map((vector) => Buffer.from(Float32Array.from(vector).buffer).toString('base64'))
const usage = { prompt_tokens: 3, total_tokens: 3 }

function listOf(embeddings: readonly unknown[], more: object = {}): object {
  const data = embeddings.map((embedding, index) => ({ object: 'embedding', index, embedding }))
  return { object: 'list', data, model, usage, ...more }
}

describe('the embeddings backend', () => {
  test('receives every field unchanged, and the model without its provider prefix', async () => {
    const app = await harness.start()
    const body = {
      input: ['a', 'b'],
      dimensions: 4,
      user: 'u',
      encoding_format: null,
      input_type: { x: [1] },
    }
    const { status, headers } = await app.call('POST', path, { body: { ...body, model: `gateway/${model}` } })
    expect(status).toBe(200)
    expect(await listBackendRequests()).toEqual([{ ...body, model }])
    expect(headers.get('x-parley-provider')).toBe('gateway')
    expect(headers.get('x-parley-attempts')).toBe('1')
  })

  test('is called with its first embedding model if the request does not specify one', async () => {
    expect((await embed(await harness.start(), 'a', { model: undefined })).status).toBe(200)
    expect(await listBackendRequests()).toEqual([{ input: 'a', model }])
  })

  test('is not called for a model that it does not list', async () => {
    const answer = await embed(await harness.start(), 'a', { model: 'none' })
    expect(answer).toMatchObject({ status: 404, body: { error: { code: 'model_not_found' } } })
    expect(await listBackendRequests()).toEqual([])
  })

  test('requires a model in the request if it does not list an embedding model', async () => {
    await harness.upstream.script('/v1/models', '{{up:body {"data":[{"id":"talker"}]}}}')
    const app = await harness.start()
    const answer = await embed(app, 'a', { model: null })
    const error = { code: 'model_not_found', param: 'model' }
    expect(answer).toMatchObject({ status: 404, body: { error } })
    expect((await embed(app, 'a', { model: 'talker' })).status).toBe(200)
  })

  test('accepts any model but has no default if its model list cannot be read', async () => {
    await harness.upstream.script('/v1/models', '{{up:status 500}}')
    const app = await harness.start()
    expect((await embed(app, 'a', { model: 'unlisted' })).body.model).toBe('unlisted')
    const answer = await embed(app, 'a', { model: null })
    expect(answer).toMatchObject({ status: 503, body: { error: { code: 'service_unavailable' } } })
  })
})

describe('a valid embeddings response', () => {
  test.each<[string, unknown, object]>([
    ['one text', 'a', {}],
    ['many texts', Array.from({ length: 300 }, (_, at) => 'a'.repeat(at + 1)), {}],
    ['tokens', [1, 2, 3], {}],
    ['token arrays', [[1, 2], [3]], {}],
    ['base64', ['a', 'b'], { encoding_format: 'base64' }],
    ['dimensions', 'a', { dimensions: 2000 }],
  ])('is forwarded byte for byte (%s)', async (_what, input, more) => {
    const { text } = await embed(await harness.start(), input, more)
    expect(text).toBe(await readDirectly({ model, input, ...more }))
  })

  const spaced = JSON.stringify(listOf(vectors), null, 2)
  test.each<[string, string]>([
    ['line feeds and spaces', spaced],
    ['spaces before colons', spaced.replaceAll(':', ' :')],
    [
      'vectors before other fields',
      spaced.replaceAll(/"object": "embedding",\s+"index": (\d),/g, '"index": $1,"object":"embedding",'),
    ],
    [
      'unknown fields',
      JSON.stringify(listOf(vectors, { id: 'é "embedding": [', extra: { usage: null } }), null, 1),
    ],
    ['exponents', JSON.stringify(listOf(vectors)).replace('0.5', '5E-1')],
    ['empty vectors', JSON.stringify(listOf([[], []]), null, 1)],
  ])('is forwarded byte for byte with %s', async (_what, sent) => {
    await answerWith(sent)
    expect((await embed(await harness.start(), ['a', 'b'])).text).toBe(sent)
  })

  test('can be read by the official client', async () => {
    const client = (await harness.start()).openai()
    await answerWith(listOf(encoded))
    const { data } = await client.embeddings.create({ model, input: ['a', 'b'] })
    expect(data.map(({ embedding }) => [...embedding])).toEqual(vectors)
  })
})

describe('an embeddings response that does not match the request', () => {
  test.each<[string, string | undefined, readonly unknown[], readonly unknown[]]>([
    ['numbers when base64 was requested', 'base64', vectors, encoded],
    ['base64 when numbers were requested', 'float', encoded, vectors],
    ['base64 when no encoding was requested', undefined, encoded, vectors],
    ['both encodings when base64 was requested', 'base64', [vectors[0], encoded[1]], encoded],
    ['both encodings when numbers were requested', 'float', [vectors[0], encoded[1]], vectors],
  ])('is converted: %s', async (_what, encoding_format, sent, wanted) => {
    await answerWith(listOf(sent, { extra: 1 }))
    const { body } = await embed(await harness.start(), ['a', 'b'], { encoding_format })
    expect(body).toEqual(listOf(wanted, { extra: 1 }))
  })

  test('is converted to base64 for the official client', async () => {
    const client = (await harness.start()).openai()
    await answerWith(listOf(vectors))
    const { data } = await client.embeddings.create({ model, input: ['a', 'b'] })
    expect(data.map(({ embedding }) => [...embedding])).toEqual(vectors)
  })

  const data = vectors.map((embedding, index) => ({ object: 'embedding', index, embedding }))
  test.each<[string, object, object]>([
    ['no model name', listOf(vectors, { model: undefined }), {}],
    ['no usage', listOf(vectors, { usage: undefined }), { usage: { prompt_tokens: 0, total_tokens: 0 } }],
    ['incomplete usage', listOf(vectors, { usage: { prompt_tokens: 3 } }), {}],
    ['usage with a negative total', listOf(vectors, { usage: { ...usage, total_tokens: -1 } }), {}],
    [
      'usage that is not in whole numbers',
      listOf(vectors, { usage: { prompt_tokens: 1.5, total_tokens: '3' } }),
      { usage: { prompt_tokens: 0, total_tokens: 0 } },
    ],
    [
      'usage above the largest exact integer',
      listOf(vectors, { usage: { prompt_tokens: 1e308, total_tokens: 1e308 } }),
      { usage: { prompt_tokens: 0, total_tokens: 0 } },
    ],
    ['no object type', listOf(vectors, { object: undefined }), {}],
    ['no indexes', listOf(vectors, { data: vectors.map((embedding) => ({ embedding })) }), {}],
    ['another order', listOf(vectors, { data: data.toReversed() }), {}],
  ])('is corrected if it has %s', async (_what, sent, changes) => {
    await answerWith(sent)
    expect((await embed(await harness.start(), ['a', 'b'])).body).toEqual(listOf(vectors, changes))
  })

  test.each<[string, unknown]>([
    ['too few vectors', listOf([[1]])],
    ['too many vectors', listOf([[1], [2], [3]])],
    ['no list of vectors', { object: 'list', data: null, model, usage }],
    ['duplicate indexes', listOf(vectors, { data: data.map((item) => ({ ...item, index: 0 })) })],
    ['an error instead of a list', { error: { message: 'leaked' } }],
    ['text instead of JSON', 'leaked'],
    ['JSON that is nested too deeply', `{"data":[],"extra":${'['.repeat(200_000)}${']'.repeat(200_000)}}`],
    ['truncated JSON', JSON.stringify(listOf(vectors)).slice(0, 60)],
    ['nested vectors', listOf([[[1]], [[2]]])],
    ['a vector that is null', listOf([[1], null])],
    ['a vector that contains null', listOf([[1], [null]])],
    ['a vector that contains NaN', JSON.stringify(listOf([[1], [7]])).replace('7', 'NaN')],
    ['a vector that contains -Infinity', JSON.stringify(listOf([[1], [7]])).replace('7', '-Infinity')],
    ['invalid base64', listOf(['!!!!', encoded[1]])],
    ['base64 of an incomplete number', listOf(['AAA=', encoded[1]])],
    ['base64 of NaN', listOf(['AADAfw==', encoded[1]])],
  ])('is rejected with 502 if it has %s', async (_what, sent) => {
    await answerWith(sent)
    const answer = await embed(await harness.start(), ['a', 'b'])
    const error = { type: 'upstream_error', code: 'backend_error' }
    expect(answer).toMatchObject({ status: 502, body: { error } })
    expect(answer.text).not.toContain('leaked')
    expect(await listBackendRequests()).toHaveLength(1)
  })
})

describe('an embeddings request to a failing backend', () => {
  test.each<[string, string, number, string, number]>([
    ['rejects the API key', '{{up:status 401}}', 502, 'backend_error', 1],
    ['does not know the path', '{{up:status 404}}', 502, 'backend_error', 1],
    ['fails', '{{up:status 500}}', 502, 'backend_error', 3],
    ['is rate-limited', '{{up:status 429}}', 429, 'rate_limit_exceeded', 3],
    ['times out', '{{up:status 408}}', 504, 'backend_timeout', 3],
    ['resets the connection', '{{up:reset}}', 503, 'backend_unavailable', 3],
    ['disconnects midway', '{{up:cut-off}}', 503, 'backend_unavailable', 3],
    ['returns an HTML page', '{{up:type text/html}}{{up:body <p>}}', 502, 'backend_error', 1],
  ])('returns an error if the backend %s', async (_what, script, status, code, calls) => {
    const answer = await embed(await harness.start(), `${script}{{up:message ${PROVIDER_KEY}}}`)
    expect(answer).toMatchObject({ status, body: { error: { code } } })
    expect(answer.text).not.toContain(PROVIDER_KEY)
    expect(await listBackendRequests()).toHaveLength(calls)
  })

  test("returns the backend's message if the request is invalid", async () => {
    const answer = await embed(await harness.start(), '{{up:status 400}}{{up:message too long}}')
    const error = { type: 'invalid_request_error', message: 'too long' }
    expect(answer).toMatchObject({ status: 400, body: { error } })
  })

  test('succeeds after retries, with the number of attempts in a header', async () => {
    const { status, headers } = await embed(await harness.start(), '{{up:first 2}}{{up:status 503}}')
    expect([status, headers.get('x-parley-attempts')]).toEqual([200, '3'])
  })

  test('returns 504 after a timeout', async () => {
    const app = await harness.start({ PARLEY_BACKEND_TOTAL_SECONDS: '0.2' })
    const answer = await embed(app, '{{up:hang}}')
    expect(answer).toMatchObject({ status: 504, body: { error: { code: 'backend_timeout' } } })
  })
})

test('a client that disconnects aborts the backend request', async () => {
  const app = await harness.start()
  const controller = new AbortController()
  const body = { model, input: '{{up:hang}} leaving' }
  const response = app.call('POST', path, { body, signal: controller.signal }).catch(() => 'left')
  const { id } = await harness.upstream.waitForRequest('leaving')
  controller.abort()
  expect(await response).toBe('left')
  expect((await harness.upstream.waitForEnd(id)).endedBy).toBe('client')
})
