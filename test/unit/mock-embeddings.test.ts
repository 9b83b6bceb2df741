/** Tests that the mock backend returns similar embeddings for similar inputs. */
import { describe, expect, test } from 'vitest'
import { failureOf, neverAborted } from '../support/backend.ts'
import { backend } from '../support/mock.ts'

type List = { data: { embedding: number[] }[]; model: string; usage: object }

async function embed(body: Record<string, unknown>): Promise<List> {
  const bytes = Buffer.concat(
    await backend.embed({ body: { model: 'mock-embedding', ...body }, signal: neverAborted }),
  )
  return JSON.parse(Buffer.from(bytes).toString())
}

async function vectorsOf(input: unknown, more: object = {}): Promise<number[][]> {
  return (await embed({ input, ...more })).data.map(({ embedding }) => embedding)
}

/** Returns the cosine similarity of two unit vectors. */
function similarity(one: readonly number[] = [], other: readonly number[] = []): number {
  return one.reduce((sum, value, place) => sum + value * (other[place] as number), 0)
}

describe("a text's mock embedding", () => {
  const odd = ['one text', '!!!', ' ', '\0', '漢字', '\ud800', '😀', 'a a a a', 'x'.repeat(10_000)]

  test.each([1, 2, 3, 256, 1536, 3072])('has unit length with %s dimension(s)', async (dimensions) => {
    for (const vector of await vectorsOf(odd, { dimensions })) {
      expect(vector).toHaveLength(dimensions)
      expect(Math.hypot(...vector)).toBeCloseTo(1, 5)
    }
  })

  test('has 1536 dimensions by default', async () => {
    expect((await vectorsOf('a'))[0]).toHaveLength(1536)
    expect((await vectorsOf('a', { dimensions: null }))[0]).toHaveLength(1536)
  })

  test('does not depend on the other texts in the request', async () => {
    const [alone] = await vectorsOf('the same')
    expect((await vectorsOf(['before', 'the same']))[1]).toEqual(alone)
    expect(new Set((await vectorsOf(odd)).map(String)).size).toBe(odd.length)
  })
})

describe('mock embeddings', () => {
  const question = 'How do I reset the password of my account?'
  const answers = [
    'Resetting your account password: open the settings and choose reset.',
    'Our opening hours are nine to five on weekdays.',
    'The recipe needs two eggs, flour and a little milk.',
  ]

  test('are more similar for texts with common words than for other texts', async () => {
    for (const dimensions of [256, 1536]) {
      const [asked, near, far, farther] = await vectorsOf([question, ...answers], { dimensions })
      expect(similarity(asked, near)).toBeGreaterThan(0.2)
      expect(similarity(asked, near)).toBeGreaterThan(similarity(asked, far) + 0.1)
      expect(similarity(asked, near)).toBeGreaterThan(similarity(asked, farther) + 0.1)
    }
  })

  test('are similar for texts with different endings or typos, in several scripts', async () => {
    const pairs = [
      ['embedding', 'embeddings'],
      ['accommodation', 'acommodation'],
      ['東京の天気は晴れ', '今日の東京の天気'],
    ]
    for (const [one, other] of pairs) {
      const [a, b, stranger] = await vectorsOf([one, other, 'volcano'])
      expect(similarity(a, b)).toBeGreaterThan(similarity(a, stranger) + 0.1)
    }
  })

  test('are equal for texts that differ only in case and punctuation', async () => {
    const [one, other] = await vectorsOf(['Hello, World!', 'hello world'])
    expect(similarity(one, other)).toBeCloseTo(1, 5)
  })

  test('differ for texts with a different word order', async () => {
    const [one, other] = await vectorsOf(['dog bites man', 'man bites dog'])
    expect(similarity(one, other)).toBeGreaterThan(0.7)
    expect(similarity(one, other)).toBeLessThan(0.99)
  })
})

describe('tokens in a mock embeddings request', () => {
  test('are treated as one text per array', async () => {
    expect(await vectorsOf([1, 2, 3])).toHaveLength(1)
    const [one, near, far] = await vectorsOf([
      [10, 20, 30, 40],
      [10, 20, 30, 41],
      [5, 6, 7, 8],
    ])
    expect(similarity(one, near)).toBeGreaterThan(similarity(one, far) + 0.3)
  })

  test('are counted as words in texts and as numbers in arrays', async () => {
    expect((await embed({ input: ['one two', 'three', ' '] })).usage).toEqual({
      prompt_tokens: 4,
      total_tokens: 4,
    })
    expect((await embed({ input: [[1, 2], [3]] })).usage).toEqual({ prompt_tokens: 3, total_tokens: 3 })
  })
})

test('the mock backend rejects a request for too many dimensions', async () => {
  const failure = await failureOf(embed({ input: 'a', dimensions: 3073 }))
  expect(failure).toMatchObject({ kind: 'status', status: 400, said: { param: 'dimensions' } })
})

test("an aborted embeddings call to the mock backend fails with the signal's reason", async () => {
  const reason = new Error('left')
  const call = backend.embed({ body: { input: 'a' }, signal: AbortSignal.abort(reason) })
  await expect(call).rejects.toBe(reason)
})
