/** Defines the schemas of budgets, grants and adjustments, and parses their amounts. */
import { z } from 'zod'
import { ServiceError } from '../lib/errors.ts'
import { reference, storable } from '../lib/schema-bounds.ts'
import { parseAmount as parseUsd, renderAmount as renderUsd } from '../prices/money.ts'

/** Small enough that a limit and all its grants are exact in the database and in JSON. */
const MOST_TOKENS = 1_000_000_000_000
const MOST_USD = 1_000_000

export type Unit = 'tokens' | 'usd'

const rules = {
  tokens: { wanted: 'a whole number of tokens', most: MOST_TOKENS, end: '' },
  usd: { wanted: 'an amount in US dollars', most: MOST_USD, end: ' with at most 9 decimals' },
} as const satisfies Record<Unit, unknown>
const described = `Whole number of tokens up to ${MOST_TOKENS}, or US dollars up to ${MOST_USD} with at most 9 decimals, as a string or a number.`

/** A number of tokens or US dollars, as a string or a number. */
export const Amount = z
  .union([z.string().max(40), z.number()], { error: 'must be a string or a number' })
  .meta({ description: described })
export type Amount = z.infer<typeof Amount>

/** Like `Amount`, but may be negative. */
const SignedAmount = Amount.meta({ description: `${described} May be negative.` })

/** Returns tokens, or nano-dollars. @throws ServiceError `invalid_value` */
export function parseAmount(amount: Amount, unit: Unit, param: string, isSigned = false): number {
  const given = String(amount)
  const isNegative = isSigned && given.startsWith('-')
  const parsed = parseUnsigned(
    typeof amount === 'number' ? Math.abs(amount) : given.slice(isNegative ? 1 : 0),
    unit,
  )
  if (parsed !== undefined && (isNegative || !given.startsWith('-'))) return isNegative ? -parsed : parsed
  const { wanted, most, end } = rules[unit]
  const rule = `must be ${wanted} from ${isSigned ? `-${most}` : 0} to ${most}${end}`
  throw new ServiceError('invalid_value', `${param}: ${rule} (got '${given}')`, { param })
}

function parseUnsigned(amount: Amount, unit: Unit): number | undefined {
  if (unit === 'tokens') {
    const text = String(amount)
    return /^\d{1,13}$/.test(text) && Number(text) <= MOST_TOKENS ? Number(text) : undefined
  }
  const nano = parseUsd(amount)
  return nano === undefined ? undefined : Number(nano)
}

export function renderAmount(amount: number, unit: Unit): string {
  return unit === 'tokens' ? String(amount) : renderUsd(BigInt(amount))
}

const REASON_LENGTH = 500
const LAST_SECOND = 253_402_300_799

const seconds = z.int().meta({ description: 'Unix seconds.' })
const scopes = ['key', 'agent', 'visitor', 'conversation'] as const
const scopeType = z.enum(scopes, { error: `must be one of ${scopes.join(', ')}` })
const periods = ['day', 'week', 'month', 'total'] as const
const period = z.enum(periods, { error: `must be one of ${periods.join(', ')}` }).meta({
  description: 'Period in `PARLEY_BUDGET_TIMEZONE`; weeks begin on Monday, and `total` never ends.',
})
const unit = z.enum(['tokens', 'usd'], { error: 'must be tokens or usd' }).meta({
  description: 'Unit of the amounts: input and output tokens, or US dollars.',
})
const mode = z.enum(['enforce', 'observe'], { error: 'must be enforce or observe' }).meta({
  description: '`observe` counts, but rejects no calls.',
})

const MOST_THRESHOLDS = 10
const DEFAULT_THRESHOLDS = [50, 80, 100]
export const DEFAULT_WARN_AT = JSON.stringify(DEFAULT_THRESHOLDS)
const percentage = 'must be a whole number from 1 to 100'
const warnAt = z
  .array(z.int({ error: percentage }).min(1, percentage).max(100, percentage), { error: 'must be a list' })
  .max(MOST_THRESHOLDS, `must contain at most ${MOST_THRESHOLDS} percentages`)
  .transform((list) => [...new Set(list)].sort((one, other) => one - other))
  .meta({
    description:
      'Percentages of the limit at which webhooks receive an event: `budget.threshold_reached`, or `budget.exhausted` for 100. An empty list turns the events off.',
  })

const scope = z.strictObject({
  type: scopeType,
  id: reference().meta({
    description:
      "Id of an agent; for the scope `key`, the 12 public characters of the caller's own parent key. A budget of visitors or conversations applies to each visitor or stored conversation of the agent.",
  }),
})

const limit = { unit: unit.default('tokens'), period, limit: Amount }
const options = { warn_at: warnAt.default(DEFAULT_THRESHOLDS), mode: mode.default('enforce') }

export const BudgetCreation = z.strictObject({ scope, ...limit, ...options }).meta({ id: 'BudgetCreation' })
export type BudgetCreation = z.output<typeof BudgetCreation>

const budgetId = reference().meta({ description: 'Budget id: `bud_` and 24 characters.' })
export const BudgetReference = z.strictObject({ budget_id: budgetId })

export const BudgetChanges = z
  .strictObject({ limit: Amount.optional(), warn_at: warnAt.optional(), mode: mode.optional() })
  .meta({ id: 'BudgetChanges' })
export type BudgetChanges = z.output<typeof BudgetChanges>
export const BudgetUpdate = BudgetChanges.extend(BudgetReference.shape)

export const BudgetQuery = z.strictObject({
  scope: scopeType.optional().meta({ description: 'Lists only budgets with this scope.' }),
  agent: reference().optional().meta({ description: 'Lists only budgets of this agent.' }),
  limit: z.int().min(1).max(100).default(20).meta({ description: 'Maximum number of budgets to return.' }),
  after: reference().optional().meta({ description: 'Id of a budget; returns only budgets after it.' }),
})
export type BudgetQuery = z.output<typeof BudgetQuery>

const amount = z.string().meta({ description: 'Decimal number.' })
const ofScope = amount
  .nullable()
  .meta({ description: 'Decimal number; null for budgets of visitors and conversations.' })

export const Budget = z
  .strictObject({
    id: z.string(),
    object: z.literal('budget'),
    scope: z.strictObject({ type: scopeType, id: z.string() }),
    unit,
    period,
    limit: amount,
    granted: ofScope,
    booked: ofScope.meta({
      description: 'Amount that calls in the current period have used; null as above.',
    }),
    reserved: ofScope.meta({ description: 'Maximum that running calls can still use; null as above.' }),
    remaining: ofScope,
    refused: z.int().nullable().meta({
      description:
        'Number of calls in the current period that the budget has rejected or, with `observe`, would have rejected.',
    }),
    period_start: seconds,
    resets_at: seconds.nullable().meta({ description: 'Unix seconds; null for the period `total`.' }),
    warn_at: z.array(z.int()).meta({ description: 'Percentages at which webhooks receive an event.' }),
    mode,
    managed_by: z
      .enum(['tenant', 'operator'])
      .meta({ description: 'Only administrators can change a budget that `operator` manages.' }),
    created_at: seconds,
  })
  .meta({ id: 'SpendingBudget' })
export type Budget = z.output<typeof Budget>

export const BudgetList = z
  .strictObject({ object: z.literal('list'), data: z.array(Budget), has_more: z.boolean() })
  .meta({ id: 'SpendingBudgetList' })

export const BudgetDeleted = z
  .strictObject({ id: z.string(), object: z.literal('budget.deleted'), deleted: z.literal(true) })
  .meta({ id: 'BudgetDeleted' })

const reason = storable(z.string().min(1).max(REASON_LENGTH)).meta({
  description: 'Reason, recorded in the audit log.',
})
const subject = z
  .string()
  .max(100)
  .nullish()
  .meta({ description: 'Pseudonym of a visitor or conversation, for budgets with that scope.' })

export const GrantBody = z
  .strictObject({
    amount: Amount,
    reason,
    expires_at: z
      .int()
      .min(0)
      .max(LAST_SECOND)
      .nullish()
      .meta({ description: 'Unix seconds; by default, the grant applies until its period ends.' }),
    subject,
  })
  .meta({ id: 'BudgetGrantCreation' })
export type GrantBody = z.output<typeof GrantBody>
export const GrantCreation = GrantBody.extend(BudgetReference.shape)

export const AdjustmentBody = z
  .strictObject({ amount: SignedAmount, reason, subject })
  .meta({ id: 'BudgetAdjustmentCreation' })
export type AdjustmentBody = z.output<typeof AdjustmentBody>
export const AdjustmentCreation = AdjustmentBody.extend(BudgetReference.shape)

const entry = {
  id: z.string(),
  budget_id: z.string(),
  amount,
  reason: z.string(),
  subject: z.string().nullable(),
  created_at: seconds,
}

export const BudgetGrant = z
  .strictObject({ object: z.literal('budget.grant'), ...entry, expires_at: seconds.nullable() })
  .meta({ id: 'BudgetGrant' })
export const BudgetAdjustment = z
  .strictObject({ object: z.literal('budget.adjustment'), ...entry })
  .meta({ id: 'BudgetAdjustment' })

export const SubjectQuery = BudgetReference.extend({
  order: z
    .enum(['-booked', 'booked'], { error: 'must be -booked or booked' })
    .default('-booked')
    .meta({ description: 'Sort order; `-booked` returns the largest amounts first.' }),
  limit: z.int().min(1).max(100).default(20).meta({ description: 'Maximum number of subjects to return.' }),
})
export type SubjectQuery = z.output<typeof SubjectQuery>

export const SubjectList = z
  .strictObject({
    object: z.literal('list'),
    data: z.array(
      z.strictObject({
        subject: z.string().meta({ description: 'Pseudonym of a visitor or conversation.' }),
        granted: amount,
        booked: amount,
        reserved: amount,
        remaining: amount,
        refused: z.int(),
      }),
    ),
  })
  .meta({ id: 'BudgetSubjectList' })
export type SubjectList = z.output<typeof SubjectList>

const OperatorBudget = z.strictObject({ ...limit, ...options })
export const OperatorBudgetsBody = z
  .strictObject({ budgets: z.array(OperatorBudget).max(8, 'must contain at most 8 budgets').default([]) })
  .meta({ id: 'OperatorBudgets' })
export type OperatorBudgetsBody = z.output<typeof OperatorBudgetsBody>

/** The list of budgets that an operator has set on a key. */
export const OperatorBudgetList = z
  .strictObject({ object: z.literal('list'), data: z.array(Budget) })
  .meta({ id: 'OperatorBudgetList' })
