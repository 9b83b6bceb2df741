/** Tests with random amounts that no decision admits more than its budgets allow. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { BudgetRow } from '../../src/budgets/budget-store.ts'
import { affordableTokens, type BudgetState, decide } from '../../src/budgets/decide.ts'
import { reservedTokens } from '../../src/budgets/grants.ts'

/** Mostly of the same size as the requests, so that all decisions occur. */
const amount = fc.oneof(fc.bigInt({ min: 0n, max: 10n ** 7n }), fc.bigInt({ min: 0n, max: 10n ** 15n }))
const need = fc.record({
  inputTokens: fc.integer({ min: 0, max: 2_000_000 }),
  textBytes: fc.constant(0),
  outputTokens: fc.integer({ min: 0, max: 1_000_000 }),
  choices: fc.integer({ min: 1, max: 8 }),
})
const state: fc.Arbitrary<BudgetState> = fc.record({
  budget: fc
    .constantFrom<BudgetRow['mode']>('enforce', 'enforce', 'observe')
    .map((mode) => ({ mode }) as BudgetRow),
  limit: amount,
  booked: amount,
  reserved: amount,
  endsAt: fc.constant(null),
})

test('a grant never exceeds the amount left in any enforcing budget', () => {
  fc.assert(
    fc.property(
      fc.array(state, { minLength: 1, maxLength: 5 }),
      need,
      fc.integer({ min: 1, max: 2_000 }),
      fc.boolean(),
      (states, asked, fewestTokens, mayWait) => {
        const decision = decide(states, { need: asked, fewestTokens }, mayWait)
        if (decision.kind !== 'granted') return
        expect(decision.outputTokens).toBeGreaterThanOrEqual(Math.min(fewestTokens, asked.outputTokens))
        expect(decision.outputTokens).toBeLessThanOrEqual(asked.outputTokens)
        for (const { budget, limit, booked, reserved } of states) {
          if (budget.mode === 'observe') continue
          const amount = reservedTokens({ need: asked, outputTokens: decision.outputTokens })
          expect(booked + reserved + BigInt(amount) <= limit).toBe(true)
        }
      },
    ),
    { numRuns: 2_000 },
  )
})

test('the affordable number of tokens fits into the amount, and one more token does not', () => {
  fc.assert(
    fc.property(need, amount, (asked, amountLeft) => {
      const tokens = affordableTokens(asked, amountLeft)
      const reserve = (outputTokens: number) => BigInt(reservedTokens({ need: asked, outputTokens }))
      if (tokens < 0) {
        expect(reserve(0) > amountLeft).toBe(true)
        return
      }
      expect(reserve(tokens) <= amountLeft).toBe(true)
      if (tokens < asked.outputTokens) expect(reserve(tokens + 1) > amountLeft).toBe(true)
    }),
    { numRuns: 2_000 },
  )
})

test('a call waits if the budgets can admit it later, and is rejected only if they cannot', () => {
  fc.assert(
    fc.property(fc.array(state, { minLength: 1, maxLength: 4 }), need, (states, asked) => {
      const decision = decide(states, { need: asked, fewestTokens: 256 }, true)
      const hasChance = states.every(
        ({ budget, limit, booked }) =>
          budget.mode === 'observe' || affordableTokens(asked, limit - booked) >= asked.outputTokens,
      )
      if (hasChance) expect(decision.kind).not.toBe('refused')
      else expect(decision.kind).not.toBe('wait')
    }),
    { numRuns: 2_000 },
  )
})
