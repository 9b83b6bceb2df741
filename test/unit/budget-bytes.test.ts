/** Tests the upper bound on the tokens of a text. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { countBytes } from '../../src/budgets/bounds/bytes.ts'

const bytesOf = (text: string) => Math.max(Buffer.byteLength(text), Buffer.byteLength(text.normalize('NFKC')))
const MEBIBYTE = 1024 * 1024

describe('the byte bound of a text', () => {
  test.each([
    ['', 0],
    ['hello', 5],
    ['größer', 8],
    ['漢字', 6],
    ['\uFDFA', 33],
    ['<|endoftext|>', 13],
    ['😀', 4],
  ])('of %j is %d', async (text, bytes) => {
    expect(await countBytes(text)).toBe(bytes)
  })

  test('is never smaller than the text in UTF-8 or in NFKC', async () => {
    const unit = fc.oneof(
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
      fc.constantFrom('\uFDFA', '\u0301', '\u0323', '\uFF9E', '\u1100', '\u1161', 'e', 'é', '\u0344'),
    )
    const text = fc.array(unit, { minLength: 1, maxLength: 1_400 }).map((units) => units.join(''))
    await fc.assert(
      fc.asyncProperty(text, async (sample) => {
        expect(await countBytes(sample)).toBeGreaterThanOrEqual(bytesOf(sample))
      }),
      { numRuns: 500 },
    )
  })

  test.each([
    ['one CJK character', '漢'],
    ['combining marks', '\u0301\u0323'],
    ['U+FDFA', '\uFDFA'],
  ])('of 2 MiB of %s is computed in short steps', async (_what, unit) => {
    const text = unit.repeat((2 * MEBIBYTE) / Buffer.byteLength(unit))
    let pauses = 0
    const bytes = await countBytes(text, async () => {
      pauses += 1
    })
    expect(bytes).toBeGreaterThanOrEqual(Buffer.byteLength(text))
    expect(pauses).toBe(Math.ceil(text.length / 512 / 64) - 1)
  })
})
