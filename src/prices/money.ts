/** Converts amounts of money between decimal text and nano-dollars, the unit of all calculations. */
import { z } from 'zod'

/** Nano-dollars in one US dollar. */
export const NANO_PER_USD = 1_000_000_000n
const DECIMALS = 9
/** The largest amount that input may contain, in US dollars. */
const MOST_USD = 1_000_000n

const amountRule = 'must be a number or a decimal string from 0 to 1000000 with at most 9 decimals'

/** Parses US dollars into nano-dollars. Returns undefined for any value that breaks the rule of `Amount`. */
export function parseAmount(given: unknown): bigint | undefined {
  const text = typeof given === 'number' ? expand(given) : given
  const [, whole, fraction = ''] =
    (typeof text === 'string' && /^(\d{1,7})(?:\.(\d{1,9}))?$/.exec(text)) || []
  if (whole === undefined) return undefined
  const nano = BigInt(whole) * NANO_PER_USD + BigInt(fraction.padEnd(DECIMALS, '0'))
  return nano <= MOST_USD * NANO_PER_USD ? nano : undefined
}

/** Renders a number without an exponent, which JavaScript uses below 0.000001. */
function expand(value: number): string {
  const text = String(value)
  const [, first, rest = '', exponent] = /^(\d)(?:\.(\d+))?e-(\d+)$/.exec(text) ?? []
  return exponent === undefined ? text : `0.${'0'.repeat(Number(exponent) - 1)}${first}${rest}`
}

/** Renders nano-dollars as US dollars without trailing zeros, such as `0.0007345`. */
export function renderAmount(nano: bigint): string {
  return renderFixedAmount(nano).replace(/\.?0+$/, '')
}

/** Renders nano-dollars as US dollars with nine decimals, such as `0.000734500`. */
export function renderFixedAmount(nano: bigint): string {
  const digits = String(nano < 0n ? -nano : nano).padStart(DECIMALS + 1, '0')
  return `${nano < 0n ? '-' : ''}${digits.slice(0, -DECIMALS)}.${digits.slice(-DECIMALS)}`
}

/** Divides and rounds up. `divisor` must be positive. */
export function divideUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor
}

/** Accepts an amount as text or as a number, and returns it as canonical text. */
export const Amount = z
  .union([z.string().max(20, amountRule), z.number()], { error: amountRule })
  .transform((given, context) => {
    const nano = parseAmount(given)
    if (nano !== undefined) return renderAmount(nano)
    context.addIssue(amountRule)
    return z.NEVER
  })
  .meta({
    override: { anyOf: [{ type: 'string' }, { type: 'number' }] },
    description: 'US dollars, from 0 to 1000000 with at most 9 decimals.',
  })
