/** Generates strings and numbers that match a JSON Schema, for the mock provider. */
import { type JsonObject, toCount } from '../../lib/formats/json.ts'
import { samplePattern } from './sample-pattern.ts'

/** `variant` selects between several different scalars; `hint` is text from the client to use instead. */
export interface ScalarWish {
  readonly variant: number
  readonly hint?: string
}

const maxTextLength = 100_000

const formats: Readonly<Record<string, (variant: number) => string>> = {
  'date-time': (variant) => `2025-01-01T00:00:${toDigits(variant % 60, 2)}Z`,
  date: (variant) => `${2025 + variant}-01-01`,
  time: (variant) => `00:00:${toDigits(variant % 60, 2)}Z`,
  duration: (variant) => `P${variant + 1}D`,
  email: (variant) => `user${variant === 0 ? '' : variant + 1}@example.com`,
  hostname: (variant) => `${variant === 0 ? '' : `host${variant + 1}.`}example.com`,
  ipv4: (variant) => `192.0.2.${variant + 1}`,
  ipv6: (variant) => `2001:db8::${variant + 1}`,
  uuid: (variant) => `00000000-0000-4000-8000-${toDigits(variant, 12)}`,
  uri: (variant) => `https://example.com/${variant === 0 ? '' : variant + 1}`,
}

export function sampleString(keywords: JsonObject, { variant, hint }: ScalarWish): string | undefined {
  const shortest = toCount(keywords.minLength, 0) ?? 0
  const longest = toCount(keywords.maxLength, 0) ?? Number.POSITIVE_INFINITY
  // JSON Schema counts lengths in code points.
  const fits = (text: string) => text.length <= longest && [...text].length >= shortest
  if (shortest > longest || shortest > maxTextLength) return undefined
  if (hint !== undefined) return fits(hint) ? hint : undefined
  const { format, pattern } = keywords
  // Prefers formats, because a pattern that schema libraries add to a format also matches the formatted text.
  const isKnown = typeof format === 'string' && Object.hasOwn(formats, format)
  const formatted = isKnown ? formats[format]?.(variant) : undefined
  if (formatted !== undefined && fits(formatted)) return formatted
  const matching = typeof pattern === 'string' ? samplePattern(pattern, variant, shortest) : undefined
  if (matching !== undefined) return matching
  const word = variant === 0 ? 'text' : `${variant + 1} text`
  return word.padEnd(shortest, ' text').slice(0, longest)
}

export function sampleNumber(
  keywords: JsonObject,
  isInteger: boolean,
  { variant, hint }: ScalarWish,
): number | undefined {
  const { low, high, step, isWithin } = readBounds(keywords, isInteger)
  if (hint !== undefined) {
    const value = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(hint) ? Number(hint) : Number.NaN
    return isWithin(value) ? value : undefined
  }
  const guesses = [1, low, low + 1, (low + high) / 2, high, high - 1, 0, -1]
  const stepped = step === 0 ? guesses : guesses.flatMap((guess) => snap(guess, step))
  const first = stepped.find(isWithin)
  if (first === undefined || variant === 0) return first
  const stride = step === 0 ? 1 : step
  const room = Math.max(0, Math.floor((high - first) / stride))
  const above = isWithin(first + room * stride) || room === Number.POSITIVE_INFINITY ? room : room - 1
  const other = variant <= above ? first + variant * stride : first - (variant - above) * stride
  return [other, low + (high - low) / (variant + 2)].find(isWithin)
}

/** Reads the numeric limits; `step` is 0 if any number is allowed, not only multiples. */
function readBounds(keywords: JsonObject, isInteger: boolean) {
  const minimum = toNumber(keywords.minimum, Number.NEGATIVE_INFINITY)
  const maximum = toNumber(keywords.maximum, Number.POSITIVE_INFINITY)
  const above = toNumber(keywords.exclusiveMinimum, Number.NEGATIVE_INFINITY)
  const below = toNumber(keywords.exclusiveMaximum, Number.POSITIVE_INFINITY)
  const divisor = toNumber(keywords.multipleOf, 0)
  const isWithin = (value: number) =>
    Number.isFinite(value) &&
    value >= minimum &&
    value <= maximum &&
    value > above &&
    value < below &&
    (!isInteger || Number.isInteger(value)) &&
    (divisor === 0 || Number.isInteger(value / divisor))
  const step = divisor > 0 ? divisor : Number(isInteger)
  return { low: Math.max(minimum, above), high: Math.min(maximum, below), step, isWithin }
}

function snap(value: number, step: number): readonly number[] {
  const below = Math.floor(value / step)
  return [below, below + 1, below - 1].map((times) => times * step)
}

function toNumber(value: unknown, fallback: number): number {
  return typeof value === 'number' ? value : fallback
}

function toDigits(value: number, width: number): string {
  return String(value).padStart(width, '0')
}
