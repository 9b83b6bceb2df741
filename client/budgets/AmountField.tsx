/** Edits an amount of tokens or US dollars. */
import { NumberInput } from '@mantine/core'
import { t } from '../strings/language.ts'
import { isUsd } from './amounts.ts'
import type { Unit } from './queries.ts'

interface AmountFieldProps {
  readonly label: string
  readonly unit: Unit
  readonly value: number | string
  readonly error: string | undefined
  readonly onChange: (value: number | string) => void
  readonly isSigned?: boolean
  readonly isFirst?: boolean
}

export function AmountField(props: AmountFieldProps) {
  const { label, unit, value, error, onChange, isSigned = false, isFirst = false } = props
  const isMoney = isUsd(unit)
  return (
    <NumberInput
      label={label}
      description={t(isMoney ? 'budgets.unitUsd' : 'budgets.unitTokens')}
      inputWrapperOrder={['label', 'input', 'description', 'error']}
      {...(isMoney ? { prefix: '$', decimalScale: 9, step: 1 } : { allowDecimal: false, step: 1_000 })}
      {...(isSigned ? {} : { min: 0 })}
      allowNegative={isSigned}
      clampBehavior="none"
      thousandSeparator=" "
      required
      data-autofocus={isFirst || undefined}
      value={value}
      error={error}
      onChange={onChange}
    />
  )
}
