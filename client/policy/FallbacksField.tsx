/** The models that are tried when one fails, in order. */
import { ActionIcon, Group, Select, Stack, Text } from '@mantine/core'
import { Icon } from '../shell/icons.tsx'
import type { ModelChoice } from '../types.ts'
import { fromValue, listOptions, toLabel, toValue } from './names.ts'
import type { PolicyDraft } from './use-policy.ts'

type Fallback = PolicyDraft['fallback_models'][number]

interface FallbacksFieldProps {
  readonly models: readonly ModelChoice[]
  readonly value: readonly Fallback[]
  readonly onChange: (value: Fallback[]) => void
}

export function FallbacksField({ models, value, onChange }: FallbacksFieldProps) {
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
              name={`Move ${toLabel(one)} up`}
              icon="up"
              isOff={index === 0}
              onClick={() => move(index, -1)}
            />
            <Move
              name={`Move ${toLabel(one)} down`}
              icon="down"
              isOff={index === value.length - 1}
              onClick={() => move(index, 1)}
            />
            <Move
              name={`Remove ${toLabel(one)}`}
              icon="cross"
              isOff={false}
              onClick={() => onChange(value.filter((other) => other !== one))}
            />
          </Group>
        </Group>
      ))}
      <Select
        label="Fallback models"
        description="Tried in this order when a model fails before its first word."
        placeholder={left.length === 0 ? 'Every model is in the list' : 'Add a model'}
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
