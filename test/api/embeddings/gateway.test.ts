/** Embeddings through a gateway: what the backend is asked, what of its answer goes on, and what is made of its failures. */
import { describe, expect, test } from 'vitest'
import type { Answer, TestApp } from '../../support/app.ts'
import { PROVIDER_KEY, startChatStand } from '../../support/chat-stand.ts'

const stand = await startChatStand()
const path = '/v1/embeddings'
const model = 'up-embedding'

function embed(app: TestApp, input: unknown, more: object = {}): Promise<Answer> {
  return app.call('POST', path, { body: { model, input, ...more } })
}

async function listAsked(): Promise<unknown[]> {
  return (await stand.upstream.listRequests()).filter((seen) => seen.path === path).map(({ body }) => body)
}

/** Lets the backend answer embeddings with that, whatever it is asked. */
function answerWith(body: unknown): Promise<void> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return stand.upstream.script(path, `{{up:body ${text}}}`)
}

/** What the backend answers to that body, read without a service in between. */
async function readDirectly(body: object): Promise<string> {
  return (await fetch(stand.upstream.origin + path, { method: 'POST', body: JSON.stringify(body) })).text()
}

const vectors = [
  [0.5, -0.25],
  [1, 0],
]
const encoded = vectors.map((vector) => Buffer.from(Float32Array.from(vector).buffer).toString('base64'))
const usage = { prompt_tokens: 3, total_tokens: 3 }

/** A backend's list of those vectors. */
function listOf(embeddings: readonly unknown[], more: object = {}): object {
  const data = embeddings.map((embedding, index) => ({ object: 'embedding', index, embedding }))
  return { object: 'list', data, model, usage, ...more }
}

describe('the backend', () => {
  test('is asked with every field as it came, by its own name of the model', async () => {
    const app = await stand.start()
    const body = {
      input: ['a', 'b'],
      dimensions: 4,
      user: 'u',
      encoding_format: null,
      input_type: { x: [1] },
    }
    const { status, headers } = await app.call('POST', path, { body: { ...body, model: `gateway/${model}` } })
    expect(status).toBe(200)
    expect(await listAsked()).toEqual([{ ...body, model }])
    expect(headers.get('x-parley-provider')).toBe('gateway')
    expect(headers.get('x-parley-attempts')).toBe('1')
  })

  test('is asked for its first embedding model where none is named', async () => {
    expect((await embed(await stand.start(), 'a', { model: undefined })).status).toBe(200)
    expect(await listAsked()).toEqual([{ input: 'a', model }])
  })

  test('is not asked for a model it does not list', async () => {
    const answer = await embed(await stand.start(), 'a', { model: 'none' })
    expect(answer).toMatchObject({ status: 404, body: { error: { code: 'model_not_found' } } })
    expect(await listAsked()).toEqual([])
  })

  test('that lists no embedding model needs one to be named', async () => {
    await stand.upstream.script('/v1/models', '{{up:body {"data":[{"id":"talker"}]}}}')
    const app = await stand.start()
    const answer = await embed(app, 'a', { model: null })
    const error = { code: 'model_not_found', param: 'model' }
    expect(answer).toMatchObject({ status: 404, body: { error } })
    expect((await embed(app, 'a', { model: 'talker' })).status).toBe(200)
  })

  test('whose list cannot be read is asked for any model, but has no default', async () => {
    await stand.upstream.script('/v1/models', '{{up:status 500}}')
    const app = await stand.start()
    expect((await embed(app, 'a', { model: 'unlisted' })).body.model).toBe('unlisted')
    const answer = await embed(app, 'a', { model: null })
    expect(answer).toMatchObject({ status: 503, body: { error: { code: 'service_unavailable' } } })
  })
})

describe('an answer that is as it should be', () => {
  test.each<[string, unknown, object]>([
    ['for one text', 'a', {}],
    ['for many', Array.from({ length: 300 }, (_, at) => 'a'.repeat(at + 1)), {}],
    ['for tokens', [1, 2, 3], {}],
    ['for token arrays', [[1, 2], [3]], {}],
    ['in base64', ['a', 'b'], { encoding_format: 'base64' }],
    ['with a width', 'a', { dimensions: 2000 }],
  ])('is forwarded byte for byte: %s', async (_what, input, more) => {
    const { text } = await embed(await stand.start(), input, more)
    expect(text).toBe(await readDirectly({ model, input, ...more }))
  })

  const spaced = JSON.stringify(listOf(vectors), null, 2)
  test.each<[string, string]>([
    ['line ends and spaces', spaced],
    ['spaces before colons', spaced.replaceAll(':', ' :')],
    [
      'vectors before all else',
      spaced.replaceAll(/"object": "embedding",\s+"index": (\d),/g, '"index": $1,"object":"embedding",'),
    ],
    [
      'fields we do not know',
      JSON.stringify(listOf(vectors, { id: 'é "embedding": [', extra: { usage: null } }), null, 1),
    ],
    ['exponents', JSON.stringify(listOf(vectors)).replace('0.5', '5E-1')],
    ['no numbers at all', JSON.stringify(listOf([[], []]), null, 1)],
  ])('is forwarded byte for byte: %s', async (_what, sent) => {
    await answerWith(sent)
    expect((await embed(await stand.start(), ['a', 'b'])).text).toBe(sent)
  })

  test('is what the official client reads', async () => {
    const client = (await stand.start()).openai()
    await answerWith(listOf(encoded))
    const { data } = await client.embeddings.create({ model, input: ['a', 'b'] })
    expect(data.map(({ embedding }) => [...embedding])).toEqual(vectors)
  })
})

describe('an answer that is not what was asked for', () => {
  test.each<[string, string | undefined, readonly unknown[], readonly unknown[]]>([
    ['numbers where base64 was asked for', 'base64', vectors, encoded],
    ['base64 where numbers were asked for', 'float', encoded, vectors],
    ['base64 where nothing was asked for', undefined, encoded, vectors],
    ['both at once', 'base64', [vectors[0], encoded[1]], encoded],
    ['both at once, for numbers', 'float', [vectors[0], encoded[1]], vectors],
  ])('is converted: %s', async (_what, encoding_format, sent, wanted) => {
    await answerWith(listOf(sent, { extra: 1 }))
    const { body } = await embed(await stand.start(), ['a', 'b'], { encoding_format })
    expect(body).toEqual(listOf(wanted, { extra: 1 }))
  })

  test('is converted for the official client, which asks for base64 silently', async () => {
    const client = (await stand.start()).openai()
    await answerWith(listOf(vectors))
    const { data } = await client.embeddings.create({ model, input: ['a', 'b'] })
    expect(data.map(({ embedding }) => [...embedding])).toEqual(vectors)
  })

  const data = vectors.map((embedding, index) => ({ object: 'embedding', index, embedding }))
  test.each<[string, object, object]>([
    ['no name of the model', listOf(vectors, { model: undefined }), {}],
    ['no usage', listOf(vectors, { usage: undefined }), { usage: { prompt_tokens: 0, total_tokens: 0 } }],
    ['half a usage', listOf(vectors, { usage: { prompt_tokens: 3 } }), {}],
    ['no kind', listOf(vectors, { object: undefined }), {}],
    ['no numbering', listOf(vectors, { data: vectors.map((embedding) => ({ embedding })) }), {}],
    ['the same number twice', listOf(vectors, { data: data.map((item) => ({ ...item, index: 0 })) }), {}],
    ['another order', listOf(vectors, { data: data.toReversed() }), {}],
  ])('is completed: %s', async (_what, sent, changes) => {
    await answerWith(sent)
    expect((await embed(await stand.start(), ['a', 'b'])).body).toEqual(listOf(vectors, changes))
  })

  test.each<[string, unknown]>([
    ['too few vectors', listOf([[1]])],
    ['too many vectors', listOf([[1], [2], [3]])],
    ['no list', { object: 'list', data: null, model, usage }],
    ['an error for an answer', { error: { message: 'leaked' } }],
    ['not JSON', 'leaked'],
    ['half of it', JSON.stringify(listOf(vectors)).slice(0, 60)],
    ['vectors of vectors', listOf([[[1]], [[2]]])],
    ['a vector that is null', listOf([[1], null])],
    ['a vector with null in it', listOf([[1], [null]])],
    ['a vector with no number in it', JSON.stringify(listOf([[1], [7]])).replace('7', 'NaN')],
    ['a vector with no end in it', JSON.stringify(listOf([[1], [7]])).replace('7', '-Infinity')],
    ['base64 that is none', listOf(['!!!!', encoded[1]])],
    ['base64 of half a number', listOf(['AAA=', encoded[1]])],
    ['base64 of no number', listOf(['AADAfw==', encoded[1]])],
  ])('is 502 when it is %s', async (_what, sent) => {
    await answerWith(sent)
    const answer = await embed(await stand.start(), ['a', 'b'])
    const error = { type: 'upstream_error', code: 'backend_error' }
    expect(answer).toMatchObject({ status: 502, body: { error } })
    expect(answer.text).not.toContain('leaked')
    expect(await listAsked()).toHaveLength(1)
  })
})

describe('a failure of the backend', () => {
  test.each<[string, string, number, string, number]>([
    ['refuses our key', '{{up:status 401}}', 502, 'backend_error', 1],
    ['does not know the path', '{{up:status 404}}', 502, 'backend_error', 1],
    ['breaks', '{{up:status 500}}', 502, 'backend_error', 3],
    ['is busy', '{{up:status 429}}', 429, 'rate_limit_exceeded', 3],
    ['gives up waiting', '{{up:status 408}}', 504, 'backend_timeout', 3],
    ['resets the connection', '{{up:reset}}', 503, 'backend_unavailable', 3],
    ['stops halfway', '{{up:cut-off}}', 503, 'backend_unavailable', 3],
    ['answers with a page', '{{up:type text/html}}{{up:body <p>}}', 502, 'backend_error', 1],
  ])('that %s', async (_what, script, status, code, calls) => {
    const answer = await embed(await stand.start(), `${script}{{up:message ${PROVIDER_KEY}}}`)
    expect(answer).toMatchObject({ status, body: { error: { code } } })
    expect(answer.text).not.toContain(PROVIDER_KEY)
    expect(await listAsked()).toHaveLength(calls)
  })

  test('that is the caller’s own mistake is told in its words', async () => {
    const answer = await embed(await stand.start(), '{{up:status 400}}{{up:message too long}}')
    const error = { type: 'invalid_request_error', message: 'too long' }
    expect(answer).toMatchObject({ status: 400, body: { error } })
  })

  test('that passes is not noticed but for the count', async () => {
    const { status, headers } = await embed(await stand.start(), '{{up:first 2}}{{up:status 503}}')
    expect([status, headers.get('x-parley-attempts')]).toEqual([200, '3'])
  })

  test('to answer in time is 504', async () => {
    const app = await stand.start({ PARLEY_BACKEND_TOTAL_SECONDS: '0.2' })
    const answer = await embed(app, '{{up:hang}}')
    expect(answer).toMatchObject({ status: 504, body: { error: { code: 'backend_timeout' } } })
  })
})

test('a caller who leaves ends the backend’s call', async () => {
  const app = await stand.start()
  const leaving = new AbortController()
  const body = { model, input: '{{up:hang}} leaving' }
  const asked = app.call('POST', path, { body, signal: leaving.signal }).catch(() => 'left')
  const { id } = await stand.upstream.waitForRequest('leaving')
  leaving.abort()
  expect(await asked).toBe('left')
  expect((await stand.upstream.waitForEnd(id)).endedBy).toBe('client')
})
