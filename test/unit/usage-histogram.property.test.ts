/** Tests that percentiles from a usage histogram are close to the exact percentiles. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  bucketOf,
  histogramOf,
  merge,
  parseHistogram,
  percentiles,
  renderHistogram,
} from '../../src/usage/histogram.ts'

const shares = [0, 0.5, 0.95, 0.99, 1]
const durations = fc.array(
  fc.oneof(fc.nat(20), fc.nat(3_000), fc.nat(1_000_000), fc.double({ min: 0, max: 2_000, noNaN: true })),
  { minLength: 1, maxLength: 200 },
)

/**
 * Returns the exact percentile: the smallest duration that at least this share of durations does not exceed.
 */
function exact(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(1, Math.ceil(share * values.length)) - 1] as number
}

describe("a usage histogram's percentiles", () => {
  test('are within 5% of the exact percentiles, plus rounding to whole milliseconds', () => {
    fc.assert(
      fc.property(durations, (values) => {
        const found = percentiles(histogramOf(values), shares) as number[]
        for (const [index, share] of shares.entries()) {
          const wanted = exact(values, share)
          const off = Math.abs((found[index] as number) - wanted)
          expect(off).toBeLessThanOrEqual(wanted < 1 ? 1 : wanted * 0.05 + 0.5)
        }
      }),
    )
  })

  test('are the same for merged histograms as for one histogram of all durations', () => {
    fc.assert(
      fc.property(durations, durations, (some, others) => {
        const merged = parseHistogram(renderHistogram(histogramOf(some)))
        merge(merged, histogramOf(others))
        expect(percentiles(merged, shares)).toEqual(percentiles(histogramOf([...some, ...others]), shares))
      }),
    )
  })

  test('are undefined for an empty histogram', () => {
    expect(percentiles(new Map(), shares)).toBeUndefined()
  })
})

test.each([
  [0, 0],
  [0.999, 0],
  [Number.NaN, 0],
  [1, 1],
  [Number.MAX_VALUE, 200],
  [Number.POSITIVE_INFINITY, 200],
])('a duration of %d ms belongs to bucket %i of a usage histogram', (durationMs, bucket) => {
  expect(bucketOf(durationMs)).toBe(bucket)
})
