/** Reads and renders the amounts of budgets. */
import { renderNumber, renderUsd } from '../format.ts'
import { t } from '../strings/language.ts'
import type { Budget, Period, Subject, Unit } from './queries.ts'

/** The amounts of a budget or of one of its subjects, for calculations and charts. */
export interface Amounts {
  readonly unit: Unit
  readonly limit: number
  readonly granted: number
  readonly booked: number
  readonly reserved: number
  readonly remaining: number
}

/** Returns undefined for a budget of visitors or conversations, which has amounts for each of them only. */
export function readAmounts(budget: Budget): Amounts | undefined {
  const { unit, limit, granted, booked, reserved, remaining } = budget
  if (granted === null || booked === null || reserved === null || remaining === null) return undefined
  return toNumbers(unit, limit, { granted, booked, reserved, remaining })
}

export function readSubject({ unit, limit }: Budget, subject: Subject): Amounts {
  return toNumbers(unit, limit, subject)
}

function toNumbers(
  unit: Unit,
  limit: string,
  { granted, booked, reserved, remaining }: Pick<Subject, 'granted' | 'booked' | 'reserved' | 'remaining'>,
): Amounts {
  return {
    unit,
    limit: Number(limit),
    granted: Number(granted),
    booked: Number(booked),
    reserved: Number(reserved),
    remaining: Number(remaining),
  }
}

/** Returns the booked share of the limit with its grants; may exceed 1. */
export function shareOf({ limit, granted, booked }: Amounts): number {
  const most = limit + granted
  return most === 0 ? 1 : booked / most
}

/** The share from which the console shows a warning. */
const NEAR = 0.8

type Level = 'within' | 'near' | 'usedUp'

export function levelOf(amounts: Amounts): Level {
  const share = shareOf(amounts)
  if (share >= 1) return 'usedUp'
  return share >= NEAR ? 'near' : 'within'
}

/** Renders an amount without its unit if the unit is tokens, for texts that name it elsewhere. */
export function renderBare(unit: Unit, amount: number): string {
  return isUsd(unit) ? renderUsd(amount) : renderNumber(amount)
}

export function renderAmount(unit: Unit, amount: number): string {
  return isUsd(unit) ? renderUsd(amount) : t('budgets.tokens', { number: amount })
}

export function isUsd(unit: Unit): boolean {
  return unit === 'usd'
}

const periodNames = {
  day: 'budgets.perDay',
  week: 'budgets.perWeek',
  month: 'budgets.perMonth',
  total: 'budgets.inTotal',
} as const satisfies Record<Period, string>

/** Renders the limit with its period, such as `$25.00 per month`. */
export function renderLimit({ unit, limit, period }: Pick<Budget, 'unit' | 'limit' | 'period'>): string {
  return t(periodNames[period], { amount: renderAmount(unit, Number(limit)) })
}
