/** Tests amounts and costs against an independent calculation with fractions. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { costOf, type TokenCounts } from '../../src/prices/cost.ts'
import { parseAmount, renderAmount, renderFixedAmount } from '../../src/prices/money.ts'
import { type PriceEntry, PriceEntry as PriceEntrySchema } from '../../src/prices/schema.ts'

/** A fraction as its numerator and denominator. */
type Fraction = readonly [bigint, bigint]

const zero: Fraction = [0n, 1n]
const add = ([a, b]: Fraction, [c, d]: Fraction): Fraction => [a * d + c * b, b * d]
const times = ([a, b]: Fraction, [c, d]: Fraction): Fraction => [a * c, b * d]
const sum = (...all: Fraction[]) => all.reduce(add, zero)
const whole = (count: number): Fraction => [BigInt(count), 1n]

/** Reads a decimal without the code under test. */
function fractionOf(text: string): Fraction {
  const [int = '', decimals = ''] = text.split('.')
  return [BigInt(int + decimals), 10n ** BigInt(decimals.length)]
}

function ceilNano(usd: Fraction): bigint {
  const [dividend, divisor] = times(usd, [1_000_000_000n, 1n])
  return dividend / divisor + (dividend % divisor === 0n ? 0n : 1n)
}

const amount = fc
  .tuple(
    fc.integer({ min: 0, max: 200 }),
    fc.integer({ min: 0, max: 999_999_999 }),
    fc.integer({ min: 0, max: 9 }),
  )
  .map(([int, decimals, kept]) => {
    const fraction = String(decimals).padStart(9, '0').slice(0, kept)
    return fraction === '' ? String(int) : `${int}.${fraction}`
  })
const positive = amount.filter((text) => /[1-9]/.test(text))

const rateNames = [
  ...['cached_input', 'cache_write', 'cache_write_1h', 'reasoning'],
  ...['input_audio', 'output_audio', 'input_image', 'output_image'],
] as const
const someRates = fc.record(
  Object.fromEntries(['input', 'output', ...rateNames].map((name) => [name, amount])),
  {
    requiredKeys: [],
  },
) as fc.Arbitrary<PriceEntry['per_million']>
const minute = fc
  .integer({ min: 0, max: 1439 })
  .map((at) => `${String(Math.floor(at / 60)).padStart(2, '0')}:${String(at % 60).padStart(2, '0')}`)

const entries: fc.Arbitrary<PriceEntry> = fc
  .record(
    {
      per_million: fc
        .tuple(amount, amount, someRates)
        .map(([input, output, more]) => ({ ...more, input, output })),
      per_call: amount,
      per_image: amount,
      per_web_search: amount,
      tiers: fc.record({ priority: positive, flex: positive }),
      above: fc
        .uniqueArray(fc.integer({ min: 0, max: 20_000 }), { maxLength: 3 })
        .chain((starts) =>
          fc.tuple(
            ...starts
              .toSorted((a, b) => a - b)
              .map((start) => someRates.map((per_million) => ({ input_tokens: start, per_million }))),
          ),
        ),
      windows: fc.array(
        fc.record({ from: minute, to: minute, per_million: someRates }).filter(({ from, to }) => from !== to),
        { maxLength: 3 },
      ),
    },
    { requiredKeys: ['per_million'] },
  )
  .map((entry) => PriceEntrySchema.parse(entry))

const count = fc.oneof(fc.nat(50), fc.nat(30_000))
const tokens: fc.Arbitrary<TokenCounts> = fc.record({
  ...{ prompt: count, completion: count, cached: count, cacheWrite: count, cacheWrite1h: count },
  ...{ reasoning: count, audioInput: count, audioOutput: count, imageInput: count, imageOutput: count },
})
const moments = fc.integer({ min: 0, max: 2 ** 41 })
const tiers = fc.constantFrom(undefined, 'default', 'priority', 'flex')

interface Call {
  readonly atMs: number
  readonly tier: string | undefined
  readonly images: number
  readonly webSearches: number
}
const calls: fc.Arbitrary<Call> = fc.record({
  atMs: moments,
  tier: tiers,
  images: fc.nat(3),
  webSearches: fc.nat(3),
})

const inForce = (entry: PriceEntry) => ({ id: 'a', source: 'config' as const, entry })

/** Returns the rates in force as text: the last matching window, then the last reached step. */
function naiveRates(entry: PriceEntry, atMs: number, prompt: number) {
  const minuteOfDay = Math.floor(atMs / 60_000) % 1440
  const toMinutes = (time: string) => Number(time.slice(0, 2)) * 60 + Number(time.slice(3))
  const window = (entry.windows ?? []).findLast(({ from, to }) => {
    const length = (toMinutes(to) - toMinutes(from) + 1440) % 1440
    return (minuteOfDay - toMinutes(from) + 1440) % 1440 < length
  })
  const step = (entry.above ?? []).filter(({ input_tokens: at }) => prompt > at).at(-1)
  return { ...entry.per_million, ...window?.per_million, ...step?.per_million }
}

/** Assigns each token to one kind and returns the cost of all in US dollars. */
function naiveCost(entry: PriceEntry, given: TokenCounts, call: Call): Fraction | undefined {
  const rates = naiveRates(entry, call.atMs, given.prompt)
  const price = (name: keyof typeof rates, fallback: keyof typeof rates) =>
    fractionOf(rates[name] ?? rates[fallback] ?? '0')
  const perMillion: Fraction = [1n, 1_000_000n]
  const spread = (total: number, kinds: readonly (readonly [number, Fraction])[], rest: Fraction) => {
    let left = total
    let usd = zero
    for (const [wanted, rate] of kinds) {
      const taken = Math.min(wanted, left)
      left -= taken
      usd = add(usd, times(times(whole(taken), rate), perMillion))
    }
    return add(usd, times(times(whole(left), rest), perMillion))
  }
  const hour = Math.min(given.cacheWrite1h, given.cacheWrite)
  const write = price('cache_write', 'input')
  const input = spread(
    given.prompt,
    [
      [given.audioInput, price('input_audio', 'input')],
      [given.imageInput, price('input_image', 'input')],
      [given.cacheWrite1h, rates.cache_write_1h === undefined ? write : fractionOf(rates.cache_write_1h)],
      [given.cacheWrite - hour, write],
      [given.cached, price('cached_input', 'input')],
    ],
    price('input', 'input'),
  )
  const output = spread(
    given.completion,
    [
      [given.audioOutput, price('output_audio', 'output')],
      [given.imageOutput, price('output_image', 'output')],
      [given.reasoning, price('reasoning', 'output')],
    ],
    price('output', 'output'),
  )
  if (call.webSearches > 0 && entry.per_web_search === undefined) return undefined
  const factors = Object.values(entry.tiers ?? {}).map(fractionOf)
  const named = entry.tiers?.[call.tier ?? '']
  const isPlain = call.tier === undefined || call.tier === 'default'
  const most = factors.reduce((a, b) => (a[0] * b[1] > b[0] * a[1] ? a : b), [1n, 1n] as Fraction)
  const factor = named !== undefined ? fractionOf(named) : isPlain ? ([1n, 1n] as Fraction) : most
  return sum(
    times(add(input, output), factor),
    fractionOf(entry.per_call ?? '0'),
    times(fractionOf(entry.per_image ?? '0'), whole(call.images)),
    times(fractionOf(entry.per_web_search ?? '0'), whole(call.webSearches)),
  )
}

describe('an amount of money', () => {
  test('is parsed to the nano-dollar and rendered without trailing zeros', () => {
    fc.assert(
      fc.property(amount, (text) => {
        const nano = parseAmount(text) as bigint
        expect(nano).toBe(ceilNano(fractionOf(text)))
        expect(parseAmount(renderAmount(nano))).toBe(nano)
        expect(renderAmount(nano)).not.toMatch(/\.\d*0$|\.$/)
        expect(parseAmount(renderFixedAmount(nano))).toBe(nano)
      }),
    )
  })

  test.each([
    [0, '0'],
    [12.5, '12.5'],
    [1e-9, '0.000000001'],
    [2.5e-7, '0.00000025'],
    [1_000_000, '1000000'],
    ['007.10', '7.1'],
  ])('is accepted as %s', (given, text) => {
    expect(renderAmount(parseAmount(given) as bigint)).toBe(text)
  })

  test.each([
    ...[-1, 1e-10, 1_000_000.000000001e1, Number.NaN, Number.POSITIVE_INFINITY, 0.1 + 0.2],
    ...['', '-1', '1e3', '.5', '5.', '1,5', ' 1', '0.0000000001', '1000000.000000001', null, true],
  ])('is rejected if it is %s', (given) => {
    expect(parseAmount(given)).toBeUndefined()
  })
})

describe('the cost of a call', () => {
  test('equals the exact cost, rounded up once to the nano-dollar', () => {
    fc.assert(
      fc.property(entries, tokens, calls, (entry, given, call) => {
        const cost = costOf(inForce(entry), given, call)
        const naive = naiveCost(entry, given, call)
        expect(cost?.total).toBe(naive === undefined ? undefined : ceilNano(naive))
        if (cost === undefined) return
        expect(cost.input + cost.output + cost.other).toBe(cost.total)
        expect([cost.input, cost.output, cost.other].every((part) => part >= 0n)).toBe(true)
      }),
      { numRuns: 500 },
    )
  })
})
