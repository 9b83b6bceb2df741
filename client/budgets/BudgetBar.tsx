/** Shows the booked and the reserved part of a budget as a bar, with marks at the thresholds. */
import './budgets.css'
import { renderShare } from '../format.ts'
import { t } from '../strings/language.ts'
import { type Amounts, levelOf, renderAmount, renderBare, shareOf } from './amounts.ts'

interface BudgetBarProps {
  /** Accessible name. */
  readonly label: string
  readonly amounts: Amounts
  /** Percentages of the limit; may be empty. */
  readonly marks: readonly number[]
  readonly isLarge?: boolean
}

export function BudgetBar({ label, amounts, marks, isLarge = false }: BudgetBarProps) {
  const { unit, limit, granted, booked, reserved } = amounts
  const most = limit + granted
  // A lowered limit can be below what is booked, so the bar shows all of it.
  const whole = Math.max(most, booked + reserved)
  const toPercent = (amount: number) => `${whole === 0 ? 100 : (amount / whole) * 100}%`
  const text = t('budgets.barText', {
    share: renderShare(shareOf(amounts)),
    booked: renderAmount(unit, booked),
    reserved: renderBare(unit, reserved),
    limit: renderAmount(unit, most),
  })
  const inner = marks.filter((mark) => mark < 100 || whole > most)
  return (
    // biome-ignore lint/a11y/useSemanticElements: the element `meter` cannot show two parts and marks
    <div
      className="budget-bar"
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.min(100, Math.floor(shareOf(amounts) * 100))}
      aria-valuetext={text}
      title={text}
      data-level={levelOf(amounts)}
      data-large={isLarge || undefined}
    >
      <span className="budget-booked" style={{ width: toPercent(booked) }} />
      <span
        className="budget-reserved"
        style={{ insetInlineStart: toPercent(booked), width: toPercent(reserved) }}
      />
      {inner.map((mark) => (
        <span
          key={mark}
          className="budget-mark"
          style={{ insetInlineStart: toPercent((most * mark) / 100) }}
          data-passed={booked >= (most * mark) / 100 || undefined}
        />
      ))}
    </div>
  )
}
