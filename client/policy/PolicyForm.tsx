/** Edits an agent's model policy. */

import {
  ActionIcon,
  Alert,
  Button,
  Group,
  MultiSelect,
  NumberInput,
  Select,
  SimpleGrid,
  Stack,
  Text,
} from '@mantine/core'
import type { ModelChoice, ModelPolicy } from '../api.ts'
import { Icon } from '../shell/icons.tsx'
import { t } from '../strings/language.ts'
import { DegradeField } from './DegradeField.tsx'
import type { PolicyDraft, PolicyEditing } from './use-policy.ts'
import { fromValue, listOptions, toLabel, toValue } from './use-policy.ts'

interface PolicyFormProps {
  readonly policy: ModelPolicy
  readonly editing: PolicyEditing
  readonly models: readonly ModelChoice[]
}

export function PolicyForm({ policy, editing, models }: PolicyFormProps) {
  const { draft, change, isDirty, isSaving, error, save, discard } = editing
  return (
    <Stack gap="md" component="section" className="panel" p="md" aria-label={t('policy.title')}>
      <DefaultField models={models} draft={draft} change={change} />
      <AllowedField models={models} draft={draft} change={change} />
      <FallbacksField
        models={models}
        value={draft.fallback_models ?? []}
        onChange={(value) => change({ fallback_models: value })}
      />
      <DegradeField models={models} value={draft.degrade} onChange={(degrade) => change({ degrade })} />
      <Limits policy={policy} draft={draft} change={change} />
      {error === undefined ? null : (
        <Alert color="red" role="alert">
          {error}
        </Alert>
      )}
      <Group justify="flex-end" gap="xs">
        <Button variant="default" disabled={!isDirty} onClick={discard}>
          {t('common.discard')}
        </Button>
        <Button disabled={!isDirty} loading={isSaving} onClick={save}>
          {t('common.save')}
        </Button>
      </Group>
    </Stack>
  )
}

interface PartProps {
  readonly draft: PolicyDraft
  readonly change: PolicyEditing['change']
}

function DefaultField({ models, draft, change }: PartProps & Pick<PolicyFormProps, 'models'>) {
  const chosen = draft.default_model
  return (
    <Select
      label={t('policy.defaultModel')}
      description={t('policy.defaultModelHelp')}
      placeholder={t('policy.defaultModelNone')}
      data={listOptions(models, chosen == null ? [] : [chosen])}
      value={chosen == null ? null : toValue(chosen)}
      searchable
      clearable
      clearButtonProps={{ 'aria-label': t('policy.clearDefault') }}
      onChange={(value) =>
        change({ default_model: value === null ? null : (fromValue(value) as typeof chosen) })
      }
    />
  )
}

function AllowedField({ models, draft, change }: PartProps & Pick<PolicyFormProps, 'models'>) {
  const chosen = draft.allowed_models ?? []
  const providers = [...new Set(models.map(({ provider }) => provider))].map((provider) => ({ provider }))
  return (
    <MultiSelect
      label={t('policy.allowedModels')}
      description={t('policy.allowedHelp')}
      placeholder={chosen.length === 0 ? t('usage.allModels') : undefined}
      data={listOptions([...providers, ...models], chosen)}
      value={chosen.map(toValue)}
      searchable
      onChange={(values) => change({ allowed_models: values.map(fromValue) })}
    />
  )
}

function Limits({ policy, draft, change }: PartProps & Pick<PolicyFormProps, 'policy'>) {
  const { day = null, month = null } = draft.budget ?? {}
  return (
    <SimpleGrid cols={{ base: 1, xs: 3 }}>
      <TokensField
        label={t('policy.answerLimit')}
        value={draft.max_output_tokens}
        onChange={(value) => change({ max_output_tokens: value })}
        used={null}
      />
      <TokensField
        label={t('policy.dailyBudget')}
        value={day}
        onChange={(value) => change({ budget: { day: value, month } })}
        used={policy.budget_used.day}
      />
      <TokensField
        label={t('policy.monthlyBudget')}
        value={month}
        onChange={(value) => change({ budget: { day, month: value } })}
        used={policy.budget_used.month}
      />
    </SimpleGrid>
  )
}

interface TokensFieldProps {
  readonly label: string
  readonly value: number | null | undefined
  readonly used: number | null
  readonly onChange: (value: number | null) => void
}

function TokensField({ label, value, used, onChange }: TokensFieldProps) {
  return (
    <div>
      <NumberInput
        label={label}
        description={t('policy.inTokens')}
        placeholder={t('admin.noLimit')}
        min={0}
        allowDecimal={false}
        thousandSeparator=" "
        value={value ?? ''}
        onChange={(next) => onChange(typeof next === 'number' ? next : null)}
      />
      {used === null ? null : (
        <Text size="xs" c="dimmed" mt={4}>
          {t('policy.used', { number: used })}
        </Text>
      )}
    </div>
  )
}

type Fallback = PolicyDraft['fallback_models'][number]

interface FallbacksFieldProps {
  readonly models: readonly ModelChoice[]
  readonly value: readonly Fallback[]
  readonly onChange: (value: Fallback[]) => void
}

function FallbacksField({ models, value, onChange }: FallbacksFieldProps) {
  const chosen = new Set(value.map(toValue))
  const left = listOptions(models, []).filter((option) => !chosen.has(option.value))
  const move = (index: number, by: number) => {
    const moved = [...value]
    const [one] = moved.splice(index, 1)
    if (one !== undefined) moved.splice(index + by, 0, one)
    onChange(moved)
  }
  return (
    <Stack gap={6}>
      {value.map((one, index) => (
        <Group key={toValue(one)} justify="space-between" wrap="nowrap" className="fallback">
          <Text size="sm" truncate>
            {index + 1}. {toLabel(one)}
          </Text>
          <Group gap={4} wrap="nowrap">
            <Move
              name={t('policy.moveUp', { name: toLabel(one) })}
              icon="up"
              isOff={index === 0}
              onClick={() => move(index, -1)}
            />
            <Move
              name={t('policy.moveDown', { name: toLabel(one) })}
              icon="down"
              isOff={index === value.length - 1}
              onClick={() => move(index, 1)}
            />
            <Move
              name={t('policy.remove', { name: toLabel(one) })}
              icon="cross"
              isOff={false}
              onClick={() => onChange(value.filter((other) => other !== one))}
            />
          </Group>
        </Group>
      ))}
      <Select
        label={t('policy.fallbackModels')}
        description={t('policy.fallbackHelp')}
        placeholder={left.length === 0 ? t('policy.allAdded') : t('policy.addModel')}
        data={left}
        value={null}
        searchable
        disabled={left.length === 0}
        onChange={(next) => {
          if (next !== null) onChange([...value, fromValue(next) as Fallback])
        }}
      />
    </Stack>
  )
}

interface MoveProps {
  readonly name: string
  readonly icon: 'up' | 'down' | 'cross'
  readonly isOff: boolean
  readonly onClick: () => void
}

function Move({ name, icon, isOff, onClick }: MoveProps) {
  return (
    <ActionIcon variant="subtle" color="gray" aria-label={name} disabled={isOff} onClick={onClick}>
      <Icon name={icon} size={16} />
    </ActionIcon>
  )
}
