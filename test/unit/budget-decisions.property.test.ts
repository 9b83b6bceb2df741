/** Tests with random amounts that no decision admits more than its budgets allow. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { BudgetRow } from '../../src/budgets/budget-store.ts'
import { type BudgetState, decide } from '../../src/budgets/decide.ts'
import { affordableTokens, reservedAmount } from '../../src/budgets/rates.ts'

const amount = fc.bigInt({ min: 0n, max: 10n ** 15n })
const small = fc.bigInt({ min: 0n, max: 20_000n })

const rates = fc.record({ input: small, output: small, extras: small })
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
  rates,
})

test('a grant never exceeds what each enforcing budget has left', () => {
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
        for (const { budget, limit, booked, reserved, rates: own } of states) {
          if (budget.mode === 'observe') continue
          const spent = booked + reserved + reservedAmount(asked, decision.outputTokens, own)
          expect(spent <= limit).toBe(true)
        }
      },
    ),
    { numRuns: 2_000 },
  )
})

test('the affordable tokens cost at most the amount, and one more token would cost more', () => {
  fc.assert(
    fc.property(need, amount, rates, (asked, left, own) => {
      const tokens = affordableTokens(asked, left, own)
      if (tokens < 0) {
        expect(reservedAmount(asked, 0, own) > left).toBe(true)
        return
      }
      expect(reservedAmount(asked, tokens, own) <= left).toBe(true)
      if (tokens < asked.outputTokens) expect(reservedAmount(asked, tokens + 1, own) > left).toBe(true)
    }),
    { numRuns: 2_000 },
  )
})

test('a call that the budgets can admit later waits, and is rejected only without a chance', () => {
  fc.assert(
    fc.property(fc.array(state, { minLength: 1, maxLength: 4 }), need, (states, asked) => {
      const decision = decide(states, { need: asked, fewestTokens: 256 }, true)
      const hasChance = states.every(
        ({ budget, limit, booked, rates: own }) =>
          budget.mode === 'observe' || affordableTokens(asked, limit - booked, own) >= asked.outputTokens,
      )
      if (hasChance) expect(decision.kind).not.toBe('refused')
      else expect(decision.kind).not.toBe('wait')
    }),
    { numRuns: 2_000 },
  )
})
