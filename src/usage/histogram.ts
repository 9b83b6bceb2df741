/**
 * Counts durations in exponential buckets, so that histograms can be added and percentiles calculated for any
 * range of days.
 */

/** Number of calls per bucket; empty buckets are absent. */
export type Histogram = Map<number, number>

/** Each bucket is 10% wide, so a percentile is at most 5% off. */
const GROWTH = 1.1
const LOG_GROWTH = Math.log(GROWTH)
/** Index of the last bucket, which starts at about 48 hours and contains all longer durations. */
const LAST_BUCKET = 200

/** Bucket 0 contains durations below one millisecond; bucket n contains 1.1^(n-1) to 1.1^n milliseconds. */
export function bucketOf(durationMs: number): number {
  if (!(durationMs >= 1)) return 0
  return Math.min(LAST_BUCKET, 1 + Math.floor(Math.log(durationMs) / LOG_GROWTH))
}

export function histogramOf(durationsMs: readonly number[]): Histogram {
  const histogram: Histogram = new Map()
  for (const bucket of durationsMs.map(bucketOf)) histogram.set(bucket, (histogram.get(bucket) ?? 0) + 1)
  return histogram
}

export function merge(histogram: Histogram, other: Histogram): void {
  for (const [bucket, calls] of other) histogram.set(bucket, (histogram.get(bucket) ?? 0) + calls)
}

/**
 * Returns the percentiles for `shares` (0 to 1) in milliseconds, as bucket midpoints; undefined without
 * calls.
 */
export function percentiles(histogram: Histogram, shares: readonly number[]): number[] | undefined {
  const buckets = [...histogram].sort(([a], [b]) => a - b)
  const total = buckets.reduce((sum, [, calls]) => sum + calls, 0)
  if (total === 0) return undefined
  return shares.map((share) => {
    let left = Math.max(1, Math.ceil(share * total))
    for (const [bucket, calls] of buckets) {
      left -= calls
      if (left <= 0) return middleOf(bucket)
    }
    return middleOf(LAST_BUCKET)
  })
}

/** Renders a histogram as JSON, such as `{"12":3}`. */
export function renderHistogram(histogram: Histogram): string {
  return JSON.stringify(Object.fromEntries(histogram))
}

export function parseHistogram(text: string): Histogram {
  const counts = Object.entries(JSON.parse(text) as Record<string, number>)
  return new Map(counts.map(([bucket, calls]) => [Number(bucket), calls]))
}

function middleOf(bucket: number): number {
  return bucket === 0 ? 0 : Math.round(GROWTH ** (bucket - 0.5))
}
