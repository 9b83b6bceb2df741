/** Shows and replaces the budgets that administrators have set on a parent key. */
import { Button, Group, NativeSelect, Stack, Text } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, type Inputs } from '../api.ts'
import { AmountField } from '../budgets/AmountField.tsx'
import { isUsd, renderAmount } from '../budgets/amounts.ts'
import { unitNames, units } from '../budgets/BudgetForm.tsx'
import { type Budget, periods } from '../budgets/queries.ts'
import { DialogForm } from '../components/Dialog.tsx'
import { Failed, Loading } from '../components/QueryStates.tsx'
import { toFailure } from '../failure.ts'
import { Icon } from '../shell/icons.tsx'
import { showDone } from '../shell/toast.tsx'
import { t } from '../strings/language.ts'

interface OperatorBudgetsProps {
  readonly keyId: string
  readonly onClose: () => void
}

export function OperatorBudgets({ keyId, onClose }: OperatorBudgetsProps) {
  const { data, error, refetch } = useQuery({
    queryKey: ['admin', 'budgets', keyId],
    queryFn: async () => (await api.admin.budgets.query({ key_id: keyId })).data,
    staleTime: 0,
    gcTime: 0,
  })
  if (data === undefined && error === null) return <Loading what="budgets" rows={2} />
  if (data === undefined) return <Failed error={error} what="budgets" retry={() => void refetch()} />
  return <Fields keyId={keyId} budgets={data} onClose={onClose} />
}

type Wanted = NonNullable<Inputs['admin']['setBudgets']['budgets']>[number]

/** A line of the form; `key` identifies it while lines are added and removed. */
interface Line {
  readonly key: number
  readonly wanted: Wanted
  readonly booked: string | null
}

const MOST_BUDGETS = 8

function Fields({ keyId, budgets, onClose }: OperatorBudgetsProps & { readonly budgets: readonly Budget[] }) {
  const queries = useQueryClient()
  const [lines, setLines] = useState(() => budgets.map(toLine))
  const [error, setError] = useState<{ readonly index: number; readonly message: string }>()
  const change = (changed: readonly Line[]) => {
    setLines([...changed])
    setError(undefined)
  }
  const add = () => {
    const key = Math.max(0, ...lines.map((line) => line.key)) + 1
    change([...lines, { key, wanted: { unit: 'usd', period: 'month', limit: '' }, booked: null }])
  }
  const save = async () => {
    const missing = lines.findIndex(({ wanted }) => wanted.limit === '')
    if (missing !== -1) return setError({ index: missing, message: t('budgets.limitMissing') })
    try {
      await api.admin.setBudgets.mutate({ key_id: keyId, budgets: lines.map(({ wanted }) => wanted) })
    } catch (thrown) {
      const { param, message } = toFailure(thrown)
      const index = /^budgets\[(\d+)\]/.exec(param ?? '')?.[1]
      if (index === undefined) throw thrown
      return setError({ index: Number(index), message: message.replace(`${param}: `, '') })
    }
    await Promise.all(['admin', 'budgets'].map((first) => queries.invalidateQueries({ queryKey: [first] })))
    showDone(t('admin.budgetSaved'))
    onClose()
  }
  return (
    <DialogForm onSubmit={save} onCancel={onClose} action={t('common.save')}>
      <Text size="sm" c="dimmed">
        {t('budgets.operatorHelp')}
      </Text>
      {lines.length === 0 ? <Text size="sm">{t('budgets.operatorNone')}</Text> : null}
      {lines.map((line, index) => (
        <LineFields
          key={line.key}
          line={line}
          number={index + 1}
          error={error?.index === index ? error.message : undefined}
          onChange={(wanted) => change(lines.with(index, { ...line, wanted }))}
          onRemove={() => change(lines.toSpliced(index, 1))}
        />
      ))}
      <div>
        <Button
          variant="default"
          size="xs"
          leftSection={<Icon name="plus" size={14} />}
          disabled={lines.length >= MOST_BUDGETS}
          onClick={add}
        >
          {t('budgets.addBudget')}
        </Button>
      </div>
    </DialogForm>
  )
}

function toLine({ unit, period, limit, mode, warn_at, booked }: Budget, index: number): Line {
  return {
    key: index,
    wanted: { unit, period, limit: isUsd(unit) ? limit : Number(limit), mode, warn_at },
    booked,
  }
}

interface LineFieldsProps {
  readonly line: Line
  readonly number: number
  readonly error: string | undefined
  readonly onChange: (wanted: Wanted) => void
  readonly onRemove: () => void
}

function LineFields({ line: { wanted, booked }, number, error, onChange, onRemove }: LineFieldsProps) {
  const { unit = 'tokens', period, limit, mode = 'enforce' } = wanted
  return (
    <Stack gap={4} role="group" aria-label={t('budgets.budgetNumber', { number })}>
      <Group gap="xs" align="flex-start">
        <NativeSelect
          label={t('budgets.unit')}
          value={unit}
          data={units.map((value) => ({ value, label: t(unitNames[value]) }))}
          onChange={({ currentTarget: { value } }) =>
            onChange({ ...wanted, unit: units.find((one) => one === value) ?? 'usd', limit: '' })
          }
        />
        <AmountField
          label={t('budgets.limit')}
          unit={unit}
          value={limit}
          error={error}
          onChange={(value) => onChange({ ...wanted, limit: value })}
        />
        <NativeSelect
          label={t('budgets.period')}
          value={period}
          data={periods.map((value) => ({ value, label: t(`budgets.${value}`) }))}
          onChange={({ currentTarget: { value } }) =>
            onChange({ ...wanted, period: periods.find((one) => one === value) ?? 'month' })
          }
        />
        <NativeSelect
          label={t('budgets.mode')}
          value={mode}
          data={[
            { value: 'enforce', label: t('budgets.enforces') },
            { value: 'observe', label: t('budgets.observes') },
          ]}
          onChange={({ currentTarget: { value } }) =>
            onChange({ ...wanted, mode: value === 'observe' ? value : 'enforce' })
          }
        />
        <Button
          variant="subtle"
          color="gray"
          px={8}
          mt={22}
          aria-label={t('budgets.removeBudget', { number })}
          onClick={onRemove}
        >
          <Icon name="trash" size={16} />
        </Button>
      </Group>
      {booked === null ? null : (
        <Text size="xs" c="dimmed">
          {`${t('budgets.booked')} ${renderAmount(unit, Number(booked))}`}
        </Text>
      )}
    </Stack>
  )
}
