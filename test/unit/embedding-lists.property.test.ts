/** Tests, with generated embedding lists, that chunk boundaries do not affect parsing. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toWantedList } from '../../src/embeddings/list.ts'
import { splitAt, splitPositions } from '../support/client-streams.ts'

const model = 'up-embedding'

function listOf(embeddings: readonly unknown[]) {
  const data = embeddings.map((embedding, index) => ({ object: 'embedding', index, embedding }))
  return { object: 'list', data, model, usage: { prompt_tokens: 3, total_tokens: 3 } }
}

function encode(vector: readonly number[]): string {
  return Buffer.from(Float32Array.from(vector).buffer).toString('base64')
}

/** Returns the resulting text and whether it was forwarded unchanged, or the error. */
function read(pieces: readonly Buffer[], count: number, encoding: 'float' | 'base64') {
  try {
    const list = toWantedList(pieces, { count, encoding, model })
    return { text: Buffer.concat(list.pieces).toString(), isForwarded: list.pieces === pieces }
  } catch (failure) {
    return String(failure)
  }
}

const anyEncoding = fc.constantFrom('float' as const, 'base64' as const)
const float32 = fc.float({ noNaN: true, noDefaultInfinity: true })
// Adding 0 converts -0 to 0 because JSON.stringify writes -0 as 0.
const anyVector = fc.array(
  float32.map((number) => number + 0),
  { maxLength: 12 },
)
const anyVectors = fc.array(anyVector, { minLength: 1, maxLength: 4 })

/** A valid or invalid embedding list. */
const anyList = fc
  .record({
    vectors: anyVectors,
    encoding: anyEncoding,
    /** An unexpected value that replaces one of the vectors. */
    oddity: fc.option(fc.constantFrom(null, [null], [[1]], 'no base64', encode([1])), {
      nil: undefined,
      freq: 2,
    }),
    extra: fc.constantFrom({}, { id: 'é "embedding": [' }, { model: 'NV-Embed “ñ”' }, { object: undefined }),
    indent: fc.constantFrom(undefined, 1, '\t'),
    colon: fc.constantFrom('":', '" :', '" : \n '),
    number: fc.option(fc.constantFrom('NaN', '-Infinity', '1E-7'), { nil: undefined, freq: 2 }),
    isOrdered: fc.boolean(),
  })
  .map(({ vectors, encoding, oddity, extra, indent, colon, number, isOrdered }) => {
    const embeddings: unknown[] = vectors.map((vector) => (encoding === 'float' ? vector : encode(vector)))
    if (oddity !== undefined) embeddings.push(oddity)
    const list = listOf(embeddings)
    const data = isOrdered ? list.data : list.data.toReversed()
    const text = JSON.stringify({ ...list, data, ...extra }, null, indent).replaceAll('":', colon)
    const odd = number === undefined ? text : text.replace(/(?<="embedding"\s*:\s*\[\s*)[^,\]]+/, number)
    return { bytes: Buffer.from(odd), count: embeddings.length }
  })

describe('an embedding list', () => {
  test('gives the same result in many chunks as in one chunk', () => {
    fc.assert(
      fc.property(anyList, anyEncoding, splitPositions, ({ bytes, count }, wanted, shares) => {
        expect(read(splitAt(bytes, shares), count, wanted)).toEqual(read([bytes], count, wanted))
      }),
      { numRuns: 500 },
    )
  })

  test('gives the same result in chunks of one byte as in one chunk', () => {
    fc.assert(
      fc.property(anyList, anyEncoding, ({ bytes, count }, wanted) => {
        const single = Array.from(bytes, (byte) => Buffer.of(byte))
        expect(read(single, count, wanted)).toEqual(read([bytes], count, wanted))
      }),
    )
  })

  test('is forwarded unchanged if it has the requested encoding', () => {
    fc.assert(
      fc.property(anyVectors, anyEncoding, splitPositions, (vectors, encoding, shares) => {
        const text = JSON.stringify(listOf(encoding === 'float' ? vectors : vectors.map(encode)))
        const answer = read(splitAt(Buffer.from(text), shares), vectors.length, encoding)
        expect(answer).toEqual({ text, isForwarded: true })
      }),
    )
  })

  test('is converted without loss if it has the other encoding', () => {
    fc.assert(
      fc.property(anyVectors, splitPositions, (vectors, shares) => {
        const [float, base64] = [vectors, vectors.map(encode)].map((all) => JSON.stringify(listOf(all)))
        const convert = (text = '', wanted: 'float' | 'base64') =>
          read(splitAt(Buffer.from(text), shares), vectors.length, wanted)
        expect(convert(float, 'base64')).toEqual({ text: base64, isForwarded: false })
        expect(convert(base64, 'float')).toEqual({ text: float, isForwarded: false })
      }),
    )
  })
})
