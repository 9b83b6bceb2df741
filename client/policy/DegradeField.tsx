/** Edits the models that answer when a budget is used up to a percentage. */

import { ActionIcon, Group, NumberInput, Select, Stack, Text } from '@mantine/core'
import type { ModelChoice } from '../api.ts'
import { Icon } from '../shell/icons.tsx'
import { t } from '../strings/language.ts'
import type { PolicyDraft } from './use-policy.ts'
import { fromValue, listOptions, toLabel } from './use-policy.ts'

type Step = PolicyDraft['degrade'][number]

const MOST_STEPS = 3
const FIRST_PERCENT = 80
const NEXT_PERCENT = 10

interface DegradeFieldProps {
  readonly models: readonly ModelChoice[]
  readonly value: readonly Step[]
  readonly onChange: (value: Step[]) => void
}

export function DegradeField({ models, value, onChange }: DegradeFieldProps) {
  const isFull = value.length === MOST_STEPS
  const add = (chosen: string) => {
    const last = value.at(-1)
    const at = last === undefined ? FIRST_PERCENT : Math.min(100, last.at + NEXT_PERCENT)
    onChange([...value, { at, to: fromValue(chosen) as Step['to'] }])
  }
  return (
    <Stack gap={6}>
      {value.map((step, index) => (
        <StepRow
          // biome-ignore lint/suspicious/noArrayIndexKey: two steps can name the same model.
          key={index}
          step={step}
          onChange={(at) => onChange(value.with(index, { ...step, at }))}
          onRemove={() => onChange(value.toSpliced(index, 1))}
        />
      ))}
      <Select
        label={t('policy.degrade')}
        description={t('policy.degradeHelp')}
        placeholder={t(isFull ? 'policy.degradeFull' : 'policy.addModel')}
        data={listOptions(models, [])}
        value={null}
        searchable
        disabled={isFull}
        onChange={(next) => {
          if (next !== null) add(next)
        }}
      />
    </Stack>
  )
}

interface StepRowProps {
  readonly step: Step
  readonly onChange: (at: number) => void
  readonly onRemove: () => void
}

function StepRow({ step: { at, to }, onChange, onRemove }: StepRowProps) {
  const name = toLabel(to)
  return (
    <Group justify="space-between" wrap="nowrap" className="fallback">
      <Text size="sm" truncate>
        {name}
      </Text>
      <Group gap={4} wrap="nowrap">
        <NumberInput
          aria-label={t('policy.degradeAt', { name })}
          size="xs"
          w={88}
          min={1}
          max={100}
          allowDecimal={false}
          suffix=" %"
          value={at}
          onChange={(next) => {
            if (typeof next === 'number') onChange(next)
          }}
        />
        <ActionIcon
          variant="subtle"
          color="gray"
          aria-label={t('policy.remove', { name })}
          onClick={onRemove}
        >
          <Icon name="cross" size={16} />
        </ActionIcon>
      </Group>
    </Group>
  )
}
