/** Tests LangChain's embeddings client with the service's base URL and key. */
import { OpenAIEmbeddings } from '@langchain/openai'
import { describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { startChatHarness } from '../support/chat-harness.ts'

const harness = await startChatHarness()

function embeddingsOf({ url, key }: TestApp, more: object = {}): OpenAIEmbeddings {
  const configuration = { baseURL: `${url}/v1` }
  return new OpenAIEmbeddings({ model: 'mock-embedding', apiKey: key, configuration, maxRetries: 0, ...more })
}

/** Returns the cosine similarity of two unit vectors. */
function similarity(one: readonly number[], other: readonly number[]): number {
  return one.reduce((sum, value, place) => sum + value * (other[place] ?? Number.NaN), 0)
}

describe("LangChain's OpenAIEmbeddings", () => {
  test('finds the document that answers a question', async () => {
    const embeddings = embeddingsOf(await startApp())
    const documents = ['How to water\nthyme and sage', 'Opening hours in winter', 'Delivery by bicycle']
    const vectors = await embeddings.embedDocuments(documents)
    const question = await embeddings.embedQuery('when should I water my thyme')
    const similarities = vectors.map((vector) => similarity(vector, question))
    expect(similarities.indexOf(Math.max(...similarities))).toBe(0)
    expect(vectors.map(({ length }) => length)).toEqual([1536, 1536, 1536])
  })

  test('preserves the order of documents across several requests', async () => {
    const documents = Array.from({ length: 7 }, (_, index) => `document ${index}`)
    const app = await startApp()
    const inBatches = await embeddingsOf(app, { batchSize: 3 }).embedDocuments(documents)
    expect(inBatches).toEqual(await embeddingsOf(app).embedDocuments(documents))
    expect(new Set(inBatches.map(String)).size).toBe(7)
  })

  test('can request a number of dimensions and an encoding', async () => {
    const app = await startApp()
    const numbers = await embeddingsOf(app, { dimensions: 8, encodingFormat: 'float' }).embedQuery('a text')
    expect(numbers).toHaveLength(8)
    const encoded: unknown = await embeddingsOf(app, { dimensions: 8, encodingFormat: 'base64' }).embedQuery(
      'a text',
    )
    expect(encoded).toBe(Buffer.from(Float32Array.from(numbers).buffer).toString('base64'))
  })

  test('receives vectors from a gateway', async () => {
    const app = await harness.start()
    const vector = await embeddingsOf(app, { model: 'up-embedding' }).embedQuery('a text')
    expect(vector.length).toBeGreaterThan(0)
    expect(vector.every(Number.isFinite)).toBe(true)
  })

  test('throws an error for an invalid key and for an unknown model', async () => {
    const app = await startApp()
    const failureOf = (more: object) =>
      embeddingsOf(app, more)
        .embedQuery('a')
        .catch((thrown: unknown) => thrown)
    expect(await failureOf({ apiKey: 'svc_nobody' })).toMatchObject({ status: 401, code: 'invalid_api_key' })
    expect(await failureOf({ model: 'gone' })).toMatchObject({ status: 404, code: 'model_not_found' })
  })
})
