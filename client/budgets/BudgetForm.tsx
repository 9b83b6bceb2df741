/** Shows the forms that create and change a budget. */
import { Radio, Select, SimpleGrid, Stack, TextInput } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { AgentSelect } from '../agents/AgentSelect.tsx'
import { api } from '../api.ts'
import { DialogForm } from '../components/Dialog.tsx'
import { toFailure } from '../failure.ts'
import { showDone } from '../shell/toast.tsx'
import { useMe } from '../shell/use-me.ts'
import { t } from '../strings/language.ts'
import { AmountField } from './AmountField.tsx'
import { isUsd } from './amounts.ts'
import { type Budget, type Period, periods, refreshBudgets, type Scope, type Unit } from './queries.ts'

type Mode = Budget['mode']

/** The values that the user has entered. */
interface Fields {
  readonly scope: Scope
  readonly agent: string | undefined
  readonly unit: Unit
  readonly period: Period
  readonly limit: number | string
  readonly mode: Mode
  /** Percentages, separated by commas. */
  readonly warnAt: string
}

type FieldErrors = Readonly<Partial<Record<'agent' | 'limit' | 'warnAt' | 'period', string>>>

/** The form's fields by the server's names. */
const params: Readonly<Record<string, keyof FieldErrors>> = {
  'scope.id': 'agent',
  'scope.type': 'agent',
  limit: 'limit',
  warn_at: 'warnAt',
  period: 'period',
}

interface CreateBudgetProps {
  /** The agent that is selected at first. */
  readonly agentId?: string
  readonly onClose: () => void
}

export function CreateBudget({ agentId, onClose }: CreateBudgetProps) {
  const queries = useQueryClient()
  const { keys, parent_key: fallback } = useMe()
  const keyId = keys.find((key) => key.is_active)?.id ?? fallback
  const create = async ({ scope, agent, warnAt, ...fields }: Fields) => {
    const id = scope === 'key' ? keyId : (agent ?? '')
    await api.budgets.create.mutate({
      scope: { type: scope, id },
      ...fields,
      warn_at: parseThresholds(warnAt),
    })
    await refreshBudgets(queries)
    showDone(t('budgets.created'))
    onClose()
  }
  return (
    <BudgetFields
      initial={{
        scope: 'agent',
        agent: agentId,
        unit: units[0],
        period: 'day',
        limit: '',
        mode: 'enforce',
        warnAt: defaultThresholds,
      }}
      action={t('budgets.create')}
      onSubmit={create}
      onCancel={onClose}
    />
  )
}

interface EditBudgetProps {
  readonly budget: Budget
  readonly onClose: () => void
}

export function EditBudget({ budget, onClose }: EditBudgetProps) {
  const { id, scope, unit, period, limit, mode } = budget
  const queries = useQueryClient()
  const save = async (fields: Fields) => {
    const changes = { limit: fields.limit, mode: fields.mode, warn_at: parseThresholds(fields.warnAt) }
    await api.budgets.update.mutate({ budget_id: id, ...changes })
    await refreshBudgets(queries)
    showDone(t('budgets.saved'))
    onClose()
  }
  return (
    <BudgetFields
      initial={{
        scope: scope.type,
        agent: scope.id,
        ...{ unit, period, mode },
        limit: isUsd(unit) ? limit : Number(limit),
        warnAt: budget.warn_at.join(', '),
      }}
      action={t('common.save')}
      onSubmit={save}
      onCancel={onClose}
      isExisting
    />
  )
}

interface BudgetFieldsProps {
  readonly initial: Fields
  readonly action: string
  readonly onSubmit: (fields: Fields) => Promise<void>
  readonly onCancel: () => void
  /** Hides the fields that cannot change. */
  readonly isExisting?: boolean
}

function BudgetFields({ initial, action, onSubmit, onCancel, isExisting = false }: BudgetFieldsProps) {
  const [fields, setFields] = useState(initial)
  const [errors, setErrors] = useState<FieldErrors>({})
  const change = (changes: Partial<Fields>) => {
    setFields({ ...fields, ...changes })
    setErrors({})
  }
  const submit = async () => {
    const found = check(fields)
    setErrors(found)
    if (Object.keys(found).length > 0) return
    try {
      await onSubmit(fields)
    } catch (thrown) {
      const { param, code, message } = toFailure(thrown)
      if (code === 'budget_exists') return setErrors({ period: t('budgets.exists') })
      const field = params[param ?? '']
      if (field === undefined) throw thrown
      setErrors({ [field]: message.replace(/^[\w.]+: /, '') })
    }
  }
  const { unit, limit, warnAt } = fields
  return (
    <DialogForm onSubmit={submit} onCancel={onCancel} action={action}>
      {isExisting ? null : <ScopeFields fields={fields} errors={errors} change={change} />}
      <SimpleGrid cols={{ base: 1, xs: isExisting ? 1 : 2 }}>
        <AmountField
          label={t('budgets.limit')}
          unit={unit}
          value={limit}
          error={errors.limit}
          isFirst={isExisting}
          onChange={(value) => change({ limit: value })}
        />
        {isExisting ? null : (
          <Select
            label={t('budgets.period')}
            description={t('budgets.periodHelp')}
            inputWrapperOrder={['label', 'input', 'description', 'error']}
            data={periods.map((value) => ({ value, label: t(`budgets.${value}`) }))}
            value={fields.period}
            error={errors.period}
            allowDeselect={false}
            onChange={(value) => change({ period: periods.find((one) => one === value) ?? 'day' })}
          />
        )}
      </SimpleGrid>
      <ModeField value={fields.mode} onChange={(mode) => change({ mode })} />
      <TextInput
        label={t('budgets.warnAt')}
        description={t('budgets.warnAtHelp')}
        value={warnAt}
        error={errors.warnAt}
        autoComplete="off"
        onChange={({ currentTarget: { value } }) => change({ warnAt: value })}
      />
    </DialogForm>
  )
}

export const units = ['usd', 'tokens'] as const satisfies readonly Unit[]
export const unitNames = { tokens: 'budgets.unitTokens', usd: 'budgets.unitUsd' } as const
const defaultThresholds = '50, 80, 100'

const scopes = [
  { value: 'agent', label: 'budgets.scopeAgent', about: 'budgets.scopeAgentHelp' },
  { value: 'visitor', label: 'budgets.scopeVisitor', about: 'budgets.scopeVisitorHelp' },
  { value: 'conversation', label: 'budgets.scopeConversation', about: 'budgets.scopeConversationHelp' },
  { value: 'key', label: 'budgets.scopeKey', about: 'budgets.scopeKeyHelp' },
] as const

interface PartProps {
  readonly fields: Fields
  readonly errors: FieldErrors
  readonly change: (changes: Partial<Fields>) => void
}

function ScopeFields({ fields, errors, change }: PartProps) {
  const { scope, agent, unit } = fields
  const about = scopes.find(({ value }) => value === scope)?.about
  return (
    <>
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        <Select
          label={t('budgets.scope')}
          description={about === undefined ? undefined : t(about)}
          inputWrapperOrder={['label', 'input', 'description', 'error']}
          data={scopes.map(({ value, label }) => ({ value, label: t(label) }))}
          value={scope}
          allowDeselect={false}
          data-autofocus
          onChange={(value) => change({ scope: scopes.find((one) => one.value === value)?.value ?? 'agent' })}
        />
        {scope === 'key' ? null : (
          <AgentSelect
            label={t('common.agent')}
            placeholder={t('budgets.selectAgent')}
            isRequired
            error={errors.agent}
            value={agent}
            onChange={(id) => change({ agent: id })}
          />
        )}
      </SimpleGrid>
      <Radio.Group
        label={t('budgets.unit')}
        value={unit}
        onChange={(value) => change({ unit: units.find((one) => one === value) ?? units[0], limit: '' })}
      >
        <Stack gap="xs" mt="xs">
          {units.map((value) => (
            <Radio
              key={value}
              value={value}
              label={t(unitNames[value])}
              description={t(isUsd(value) ? 'budgets.unitUsdHelp' : 'budgets.unitTokensHelp')}
            />
          ))}
        </Stack>
      </Radio.Group>
    </>
  )
}

function ModeField({ value, onChange }: { readonly value: Mode; readonly onChange: (mode: Mode) => void }) {
  return (
    <Radio.Group
      label={t('budgets.mode')}
      value={value}
      onChange={(next) => onChange(next === 'observe' ? next : 'enforce')}
    >
      <Stack gap="xs" mt="xs">
        <Radio value="enforce" label={t('budgets.enforces')} description={t('budgets.enforceHelp')} />
        <Radio value="observe" label={t('budgets.observes')} description={t('budgets.observeHelp')} />
      </Stack>
    </Radio.Group>
  )
}

function check({ scope, agent, limit, warnAt }: Fields): FieldErrors {
  return {
    ...(scope !== 'key' && agent === undefined ? { agent: t('budgets.agentMissing') } : {}),
    ...(limit === '' ? { limit: t('budgets.limitMissing') } : {}),
    ...(parseThresholds(warnAt) === undefined ? { warnAt: t('budgets.warnAtInvalid') } : {}),
  }
}

/** Returns ascending percentages without duplicates; undefined if the text contains anything else. */
function parseThresholds(text: string): number[] | undefined {
  const parts = text.split(/[\s,;]+/).filter((part) => part !== '')
  const numbers = parts.map(Number)
  const isValid = numbers.every((number) => Number.isInteger(number) && number >= 1 && number <= 100)
  return isValid ? [...new Set(numbers)].sort((one, other) => one - other) : undefined
}
