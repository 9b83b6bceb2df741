/** Tests with random amounts that no decision admits more than its budgets allow. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { BudgetRow } from '../../src/budgets/budget-store.ts'
import { type Asked, type BudgetState, decide } from '../../src/budgets/reservations/decide.ts'
import { amountOf, type Need, tokensWithin } from '../../src/prices/worst-case.ts'

/** Mostly similar in size to the requests, so that all decisions occur. */
const amount = fc.oneof(fc.bigInt({ min: 0n, max: 10n ** 7n }), fc.bigInt({ min: 0n, max: 10n ** 15n }))
const small = fc.bigInt({ min: 0n, max: 2_000_000n })
const need: fc.Arbitrary<Need> = fc.oneof(
  fc.record({ fixed: small, perToken: fc.bigInt(1n, 8n), divisor: fc.constant(1n), fees: fc.constant(0n) }),
  fc.record({
    fixed: fc.bigInt(0n, 10n ** 24n),
    perToken: fc.bigInt(0n, 10n ** 21n),
    divisor: fc.constant(10n ** 15n),
    fees: small,
  }),
)
const asked: fc.Arbitrary<Asked> = fc.record({
  outputTokens: fc.integer({ min: 0, max: 1_000_000 }),
  fewestTokens: fc.integer({ min: 1, max: 2_000 }),
  needs: fc.record({ tokens: need, usd: need }),
})
const state: fc.Arbitrary<BudgetState> = fc.record({
  budget: fc
    .record({
      mode: fc.constantFrom<BudgetRow['mode']>('enforce', 'enforce', 'observe'),
      unit: fc.constantFrom<BudgetRow['unit']>('tokens', 'usd'),
    })
    .map((row) => row as BudgetRow),
  limit: amount,
  booked: amount,
  reserved: amount,
  endsAt: fc.constant(null),
})

const needIn = ({ needs }: Asked, { budget }: BudgetState) => needs[budget.unit] as Need

test('a grant never exceeds the amount left in any enforcing budget', () => {
  fc.assert(
    fc.property(
      fc.array(state, { minLength: 1, maxLength: 5 }),
      asked,
      fc.boolean(),
      (states, request, mayWait) => {
        const decision = decide(states, request, mayWait)
        if (decision.kind !== 'granted') return
        const { outputTokens, fewestTokens } = request
        expect(decision.outputTokens).toBeGreaterThanOrEqual(Math.min(fewestTokens, outputTokens))
        expect(decision.outputTokens).toBeLessThanOrEqual(outputTokens)
        for (const each of states) {
          if (each.budget.mode === 'observe') continue
          const reserved = amountOf(needIn(request, each), decision.outputTokens)
          // A free request cannot exceed a budget.
          expect(reserved === 0n || each.booked + each.reserved + reserved <= each.limit).toBe(true)
        }
      },
    ),
    { numRuns: 2_000 },
  )
})

test('the affordable number of tokens fits into the amount, and one more token does not', () => {
  fc.assert(
    fc.property(need, amount, fc.integer({ min: 0, max: 1_000_000 }), (each, left, most) => {
      const tokens = Math.min(tokensWithin(each, left, most), most)
      if (tokens < 0) {
        expect(amountOf(each, 0) > left).toBe(true)
        return
      }
      expect(amountOf(each, tokens) <= left).toBe(true)
      if (tokens < most) expect(amountOf(each, tokens + 1) > left).toBe(true)
    }),
    { numRuns: 2_000 },
  )
})

test('a call waits if the budgets can admit it later, and is rejected only if they cannot', () => {
  fc.assert(
    fc.property(fc.array(state, { minLength: 1, maxLength: 4 }), asked, (states, request) => {
      const decision = decide(states, request, true)
      const hasChance = states.every((each) => {
        const { budget, limit, booked } = each
        const most = tokensWithin(needIn(request, each), limit - booked, request.outputTokens)
        return budget.mode === 'observe' || most >= request.outputTokens
      })
      if (hasChance) expect(decision.kind).not.toBe('refused')
      else expect(decision.kind).not.toBe('wait')
    }),
    { numRuns: 2_000 },
  )
})

test('a request without a price is rejected by each enforcing US dollar budget, and by no other budget', () => {
  fc.assert(
    fc.property(fc.array(state, { minLength: 1, maxLength: 4 }), asked, (states, request) => {
      const usd = { code: 'model_not_priced', param: 'model' } as const
      const decision = decide(states, { ...request, needs: { ...request.needs, usd } }, true)
      const isLimited = states.some(({ budget }) => budget.unit === 'usd' && budget.mode === 'enforce')
      expect(decision.kind === 'unpriced').toBe(isLimited)
    }),
  )
})
