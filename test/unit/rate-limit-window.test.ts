/** Tests when the in-memory rate limiter allows and rejects requests. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  advanceWindow,
  createMemoryRateLimiter,
  type Hit,
  type Quota,
  type Window,
} from '../../src/replicas/limits.ts'
import { createFakeClock } from '../support/fake-clock.ts'

const MINUTE_MS = 60_000
/** Milliseconds between requests. */
const gaps = fc.array(fc.integer({ min: 0, max: 90_000 }), { minLength: 1, maxLength: 60 })

describe('a rate-limit window', () => {
  test('starts with the first request and lasts a minute', () => {
    expect(advanceWindow(undefined, 500)).toEqual({ count: 1, endsAtMs: 500 + MINUTE_MS })
    expect(advanceWindow({ count: 7, endsAtMs: 900 }, 899)).toEqual({ count: 8, endsAtMs: 900 })
    expect(advanceWindow({ count: 7, endsAtMs: 900 }, 900)).toEqual({ count: 1, endsAtMs: 900 + MINUTE_MS })
  })

  test('counts every request once and never overlaps another window', () => {
    fc.assert(
      fc.property(gaps, (waits) => {
        let nowMs = 0
        let window: Window | undefined
        let counted = 0
        for (const waitMs of waits) {
          nowMs += waitMs
          const next = advanceWindow(window, nowMs)
          expect(next.endsAtMs).toBeGreaterThan(nowMs)
          if (next.endsAtMs !== window?.endsAtMs) {
            expect(next).toEqual({ count: 1, endsAtMs: nowMs + MINUTE_MS })
            expect(nowMs).toBeGreaterThanOrEqual(window?.endsAtMs ?? 0)
            counted += window?.count ?? 0
          }
          window = next
        }
        expect(counted + (window?.count ?? 0)).toBe(waits.length)
      }),
    )
  })
})

test('a request whose cost exceeds one of its quotas is not charged to any quota', () => {
  const clock = createFakeClock()
  const limiter = createMemoryRateLimiter(clock)
  const both: [Quota, Quota] = [
    { key: 'a', limit: 10 },
    { key: 'b', limit: 4 },
  ]
  expect(limiter.hit(both, 3)).toMatchObject({ isLimited: false, limit: 4, remaining: 1 })
  expect(limiter.hit(both, 2)).toMatchObject({ isLimited: true, limit: 4 })
  expect(limiter.hit([both[0]], 7)).toMatchObject({ isLimited: false, remaining: 0 })
})

function createLimiter() {
  const clock = createFakeClock()
  const limiter = createMemoryRateLimiter(clock)
  return { clock, hit: (...quotas: [Quota, ...Quota[]]) => limiter.hit(quotas) as Hit }
}

describe('the rate limiter', () => {
  test('allows exactly the configured number of requests per minute', () => {
    const { hit } = createLimiter()
    const quota = { key: 'a', limit: 3 }
    expect(
      [1, 2, 3, 4, 5].map(() => hit(quota)).map(({ isLimited, remaining }) => [isLimited, remaining]),
    ).toEqual([
      [false, 2],
      [false, 1],
      [false, 0],
      [true, 0],
      [true, 0],
    ])
  })

  test('allows a caller again after exactly the returned wait and not a second earlier', () => {
    const quotas = fc.tuple(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 5 }))
    fc.assert(
      fc.property(quotas, gaps, ([shared, own], waits) => {
        const { clock, hit } = createLimiter()
        const both: [Quota, Quota] = [
          { key: 'shared', limit: shared },
          { key: 'own', limit: own },
        ]
        for (const [index, waitMs] of waits.entries()) {
          clock.advance(waitMs / 1000)
          // Other clients also use up the shared window.
          if (index % 3 === 0) hit(both[0], { key: 'other', limit: own })
          const { isLimited, retryAfterSeconds } = hit(...both)
          if (!isLimited) continue
          clock.advance(retryAfterSeconds - 1)
          if (retryAfterSeconds > 1) expect(hit(...both).isLimited).toBe(true)
          clock.advance(1)
          expect(hit(...both).isLimited).toBe(false)
        }
      }),
    )
  })

  test('returns exactly 60 seconds at the start of a window, even if the clock returns fractions of milliseconds', () => {
    let nowMs = 0
    const limiter = createMemoryRateLimiter({ now: () => nowMs, monotonic: () => nowMs })
    for (nowMs = 0; nowMs < 50_000; nowMs += 97.3) {
      const quota = { key: `at ${nowMs}`, limit: 1 }
      limiter.hit([quota])
      expect((limiter.hit([quota]) as Hit).retryAfterSeconds).toBe(60)
    }
  })

  test('returns the end of the window in whole seconds, rounded up', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 200_000 }),
        fc.integer({ min: 0, max: 59_999 }),
        (startMs, laterMs) => {
          const { clock, hit } = createLimiter()
          clock.advance(startMs / 1000)
          const endsAt = clock.now() / 1000 + 60
          hit({ key: 'a', limit: 1 })
          clock.advance(laterMs / 1000)
          const { resetAt, retryAfterSeconds } = hit({ key: 'a', limit: 1 })
          expect(resetAt).toBe(Math.ceil(Number(endsAt.toFixed(3))))
          expect(Number.isInteger(retryAfterSeconds)).toBe(true)
          expect(retryAfterSeconds).toBeGreaterThanOrEqual(1)
          expect(clock.now() / 1000 + retryAfterSeconds).toBeGreaterThanOrEqual(endsAt - 1e-6)
        },
      ),
    )
  })

  test('does not charge a rejected request to any of its windows', () => {
    const { clock, hit } = createLimiter()
    const own = { key: 'own', limit: 3 }
    hit({ key: 'full', limit: 1 })
    for (let count = 0; count < 5; count++) expect(hit({ key: 'full', limit: 1 }, own).isLimited).toBe(true)
    expect(hit(own).remaining).toBe(2)
    clock.advance(60)
    expect(hit({ key: 'full', limit: 1 }, own)).toMatchObject({ isLimited: false })
  })

  test('returns the window with fewer requests left or, if both are full, the one that resets later', () => {
    const { clock, hit } = createLimiter()
    expect(hit({ key: 'a', limit: 9 }, { key: 'b', limit: 5 })).toMatchObject({ limit: 5, remaining: 4 })
    expect(hit({ key: 'c', limit: 5 }, { key: 'd', limit: 9 })).toMatchObject({ limit: 5, remaining: 4 })
    hit({ key: 'early', limit: 1 })
    clock.advance(20)
    hit({ key: 'late', limit: 2 })
    hit({ key: 'late', limit: 2 })
    const full: [Quota, Quota] = [
      { key: 'late', limit: 2 },
      { key: 'early', limit: 1 },
    ]
    expect(hit(...full)).toMatchObject({ limit: 2, retryAfterSeconds: 60 })
    expect(hit(full[1], full[0])).toMatchObject({ limit: 2, retryAfterSeconds: 60 })
  })

  test('limits each key separately', () => {
    const { hit } = createLimiter()
    const keys = ['a', 'b', 'a:b', '__proto__', 'constructor', '']
    for (const key of keys) expect(hit({ key, limit: 1 }).isLimited).toBe(false)
    for (const key of keys) expect(hit({ key, limit: 1 }).isLimited).toBe(true)
  })

  test('discards the least recently used windows if there are too many', () => {
    const { hit } = createLimiter()
    for (let count = 0; count < 120_000; count++) {
      hit({ key: `flood-${count}`, limit: 1 })
      if (count % 10_000 === 0) hit({ key: 'in use', limit: 1 })
    }
    expect(hit({ key: 'in use', limit: 1 }).isLimited).toBe(true)
    expect(hit({ key: 'flood-119999', limit: 1 }).isLimited).toBe(true)
    expect(hit({ key: 'flood-0', limit: 1 }).isLimited).toBe(false)
  })
})
