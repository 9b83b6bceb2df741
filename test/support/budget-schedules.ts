/**
 * Creates random schedules of calls with a budget, and computes what an honest provider charges for them and
 * what a service must book.
 */
import fc from 'fast-check'

/** Prices with fractions of a nano-dollar for each token. */
export const PRICES = `
prices:
  gateway/metered:
    - per_million: { input: 0.0375, cache_write: 0.0425, output: 0.15 }
      per_call: "0.000001003"
`
/** Thousandths of nano-dollars for each token, and for each call. */
const [INPUT, HIGHEST_INPUT, OUTPUT, PER_CALL] = [37_500n, 42_500n, 150_000n, 1_003_000n]

type Reported = 'correct' | 'none' | 'zero' | 'negative' | 'huge' | 'text'

type Ending =
  /** `usage` is what the provider reports; it charges the correct amount. */
  | { readonly kind: 'whole'; readonly usage: Reported }
  /** The client leaves; the provider stops within 256 tokens. */
  | { readonly kind: 'cut'; readonly seen: number; readonly unseen: number }
  | { readonly kind: 'lost' | 'timeout' | 'refused' | 'hangs' }

export interface Request {
  readonly textLength: number
  readonly choices: number
  readonly maxTokens: number | undefined
  /** Share of the input bound that the provider counts as input. */
  readonly inputShare: number
  /** Tokens that the model would produce for each choice without a limit. */
  readonly wanted: number
  readonly bytesPerToken: number
  readonly ending: Ending
}

export type Step =
  | {
      readonly kind: 'begin'
      readonly calls: readonly { readonly replica: 0 | 1; readonly rounds: readonly Request[] }[]
    }
  | { readonly kind: 'end'; readonly picks: readonly number[] }
  | { readonly kind: 'kill'; readonly replica: 0 | 1 }
  | { readonly kind: 'restart' }
  | { readonly kind: 'pass'; readonly seconds: number; readonly paused: 0 | 1 | undefined }
  | { readonly kind: 'grant'; readonly amount: number }

const ending: fc.Arbitrary<Ending> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('whole' as const),
      usage: fc.constantFrom<Reported[]>('correct', 'correct', 'none', 'zero', 'negative', 'huge', 'text'),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('cut' as const),
      seen: fc.nat(400),
      unseen: fc.nat(256),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom('lost', 'timeout', 'refused', 'hangs') }),
  },
)

const request: fc.Arbitrary<Request> = fc.record({
  textLength: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 3_000 })),
  choices: fc.constantFrom(1, 1, 1, 1, 4),
  maxTokens: fc.option(fc.integer({ min: 1, max: 6_000 }), { nil: undefined }),
  inputShare: fc.double({ min: 0, max: 1, noNaN: true }),
  wanted: fc.oneof(fc.nat(600), fc.nat(100_000)),
  bytesPerToken: fc.integer({ min: 1, max: 32 }),
  ending,
})

const replica = fc.constantFrom(0 as const, 1 as const)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('begin' as const),
      calls: fc.array(fc.record({ replica, rounds: fc.array(request, { minLength: 1, maxLength: 3 }) }), {
        minLength: 1,
        maxLength: 24,
      }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('end' as const),
      picks: fc.array(fc.nat(63), { minLength: 1, maxLength: 24 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('kill' as const), replica }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('pass' as const),
      seconds: fc.integer({ min: 1, max: 200 }),
      paused: fc.constantFrom(undefined, 0 as const, 1 as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('grant' as const), amount: fc.nat(20_000) }) },
)
export const schedule = fc.record({
  steps: fc.array(step, { minLength: 2, maxLength: 14, size: 'max' }),
  /** Tokens of the budgets; the amounts in US dollars are of similar size. */
  limit: fc.oneof(fc.nat(8_000), fc.nat(100_000), fc.nat(1_000_000)),
})

/** Money in thousandths of nano-dollars. */
export interface Amounts {
  readonly tokens: bigint
  readonly milliNano: bigint
}

/** A request that the provider has received. */
export interface SentRequest {
  readonly request: Request
  /** Maximum number of output tokens for each choice. */
  readonly granted: number
}

export function toBody({ textLength, choices, maxTokens }: Request) {
  const messages = [{ role: 'user', content: 'x'.repeat(textLength) }]
  return { messages, n: choices, ...(maxTokens !== undefined && { max_tokens: maxTokens }) }
}

/** The input bound of docs/budgets.md. */
function inputBound(request: Request): number {
  return Buffer.byteLength(JSON.stringify({ messages: toBody(request).messages })) + 16
}

function inputOf(request: Request): number {
  const least = Math.ceil(request.textLength / 32)
  return least + Math.floor((inputBound(request) - least) * request.inputShare)
}

/** Output tokens of all choices; the provider respects the limit. */
export function outputOf({ request, granted }: SentRequest): number {
  return Math.min(request.wanted, granted) * request.choices
}

/** Returns the amounts that the provider charges. */
export function toCharge(round: SentRequest): Amounts {
  const { request } = round
  const { ending } = request
  const sent = ending.kind === 'cut' ? ending.seen + ending.unseen : Number.POSITIVE_INFINITY
  const output = BigInt(Math.min(outputOf(round), sent))
  const input = BigInt(inputOf(request))
  return { tokens: input + output, milliNano: roundUp(input * INPUT + output * OUTPUT) + PER_CALL }
}

export function toReserved({ request, granted }: SentRequest): Amounts {
  return toHighest(inputBound(request), granted * request.choices)
}

/** Returns the amounts that the service must book, as docs/budgets.md defines them. */
export function toBooking(round: SentRequest): Amounts {
  const { request, granted } = round
  const { ending, bytesPerToken, choices } = request
  const most = granted * choices
  const bound = inputBound(request)
  switch (ending.kind) {
    case 'refused':
      return { tokens: 0n, milliNano: 0n }
    case 'lost':
    case 'timeout':
    case 'hangs':
      return toHighest(bound, most)
    case 'cut': {
      const bytes = Math.min(ending.seen, outputOf(round)) * bytesPerToken
      return toHighest(bound, Math.min(bytes + 256, most))
    }
    case 'whole': {
      if (ending.usage === 'correct') return toCharge(round)
      return toHighest(bound, Math.min(outputOf(round) * bytesPerToken, most))
    }
  }
}

function toHighest(input: number, output: number): Amounts {
  const milliNano = roundUp(BigInt(input) * HIGHEST_INPUT + BigInt(output) * OUTPUT) + PER_CALL
  return { tokens: BigInt(input + output), milliNano }
}

/** Each request is rounded up to a nano-dollar. */
function roundUp(milliNano: bigint): bigint {
  return divideUp(milliNano) * 1_000n
}

export function divideUp(milliNano: bigint): bigint {
  return (milliNano + 999n) / 1_000n
}

/** Returns the usage that the provider reports for a whole answer. */
export function toUsage(sent: SentRequest): unknown {
  const { ending } = sent.request
  const [prompt, completion] = [inputOf(sent.request), outputOf(sent)]
  const usageOf = (one: unknown, other: unknown) => ({ prompt_tokens: one, completion_tokens: other })
  switch (ending.kind === 'whole' ? ending.usage : 'none') {
    case 'correct':
      return usageOf(prompt, completion)
    case 'none':
      return undefined
    case 'zero':
      return usageOf(0, 0)
    case 'negative':
      return usageOf(prompt, -1)
    case 'huge':
      return usageOf(1e308, completion)
    case 'text':
      return usageOf(String(prompt), String(completion))
  }
}

export function addAmounts(sums: Map<number, Amounts>, day: number, { tokens, milliNano }: Amounts): void {
  const sum = sums.get(day) ?? { tokens: 0n, milliNano: 0n }
  sums.set(day, { tokens: sum.tokens + tokens, milliNano: sum.milliNano + milliNano })
}

/** `day` undefined: all days. */
export function sumOf(sums: ReadonlyMap<number, Amounts>, day: number | undefined): Amounts {
  const wanted = [...sums].filter(([each]) => day === undefined || each === day).map(([, amounts]) => amounts)
  return {
    tokens: wanted.reduce((sum, { tokens }) => sum + tokens, 0n),
    milliNano: wanted.reduce((sum, { milliNano }) => sum + milliNano, 0n),
  }
}
