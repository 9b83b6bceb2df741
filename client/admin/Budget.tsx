/** Shows and sets the daily and monthly token budgets of a parent key. */

import { NumberInput, Progress, Stack, Text } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { Outputs } from '../api.ts'
import { api } from '../api.ts'
import { DialogForm } from '../components/Dialog.tsx'
import type { AdminSearch } from '../search.ts'
import { showDone } from '../shell/toast.tsx'
import { t } from '../strings/language.ts'

interface BudgetFormProps {
  readonly adminKey: AdminKey
  readonly onClose: () => void
}

export function BudgetForm({ adminKey: { id, budget }, onClose }: BudgetFormProps) {
  const [day, setDay] = useState(budget.day?.limit ?? '')
  const [month, setMonth] = useState(budget.month?.limit ?? '')
  const queries = useQueryClient()
  const save = async () => {
    await api.admin.setBudget.mutate({ key_id: id, day: toBound(day), month: toBound(month) })
    await queries.invalidateQueries({ queryKey: ['admin'] })
    onClose()
    showDone(t('admin.budgetSaved'))
  }
  return (
    <DialogForm onSubmit={save} onCancel={onClose} action={t('common.save')}>
      <Text size="sm" c="dimmed">
        {t('admin.budgetHelp')}
      </Text>
      <Tokens label={t('admin.perDay')} value={day} onChange={setDay} isFirst />
      <Tokens label={t('admin.perMonth')} value={month} onChange={setMonth} />
    </DialogForm>
  )
}

interface TokensProps {
  readonly label: string
  readonly value: number | string
  readonly onChange: (value: number | string) => void
  readonly isFirst?: boolean
}

function Tokens({ label, value, onChange, isFirst = false }: TokensProps) {
  return (
    <NumberInput
      label={label}
      placeholder={t('admin.noLimit')}
      min={0}
      max={Number.MAX_SAFE_INTEGER}
      allowDecimal={false}
      allowNegative={false}
      thousandSeparator=" "
      hideControls
      data-autofocus={isFirst || undefined}
      value={value}
      onChange={onChange}
    />
  )
}

function toBound(value: number | string): number | null {
  return value === '' ? null : Number(value)
}

const periods = [
  ['day', 'admin.usedToday', 'admin.tokensToday'],
  ['month', 'admin.usedMonth', 'admin.tokensMonth'],
] as const

export function BudgetState({ budget }: Pick<AdminKey, 'budget'>) {
  const bounds = periods.flatMap(([period, sentence, label]) => {
    const bound = budget[period]
    return bound === null ? [] : [{ ...bound, sentence, label }]
  })
  if (bounds.length === 0) return t('admin.noLimit')
  return (
    <Stack gap={4} className="budget">
      {bounds.map(({ limit, used, sentence, label }) => {
        const share = limit === 0 ? 1 : Math.min(used / limit, 1)
        return (
          <div key={label}>
            <Text size="xs">{t(sentence, { used, limit })}</Text>
            <Progress
              size="sm"
              value={share * 100}
              color={share < 1 ? 'indigo' : 'red'}
              aria-label={t(label)}
            />
          </div>
        )
      })}
    </Stack>
  )
}

export interface TabProps {
  readonly search: AdminSearch
  /** Changes some of the address's search parameters. */
  readonly change: (changes: Readonly<Record<string, string | undefined>>) => void
  /** Replaces all search parameters. */
  readonly go: (search: AdminSearch) => void
}

export type AdminKey = Outputs['admin']['keys']['data'][number]
