/** Shows a field for each filter of the conversations. */
import { Group, NativeSelect, Stack, TextInput } from '@mantine/core'
import { useEffect, useState } from 'react'
import { AgentSelect } from '../../agents/AgentSelect.tsx'
import {
  type ConversationFilters,
  channels,
  modes,
  ratingReasons,
  turnReasons,
  turnStatuses,
} from '../../search.ts'
import type { PlainKey } from '../../strings/catalogue.ts'
import { t } from '../../strings/language.ts'
import { reasonNames } from '../turn/reasons.ts'
import { type FilterProps, numberFilters, textFilters } from './filters.ts'

type Filter = keyof ConversationFilters

export const filterLabels = {
  q: 'common.search',
  agent: 'common.agent',
  from: 'conversations.from',
  to: 'conversations.to',
  channel: 'conversations.channel',
  mode: 'conversations.answeredBy',
  assignee: 'conversations.assignee',
  status: 'conversations.turnStatus',
  rating: 'conversations.rating',
  reason: 'conversations.reason',
  tag: 'conversations.tag',
  tool: 'conversations.tool',
  error: 'conversations.errorCode',
  model: 'conversations.modelName',
  version: 'conversations.version',
  min_tokens: 'conversations.minTokens',
  visitor: 'conversations.visitorId',
} as const satisfies Record<Filter, PlainKey>

/** The choices of the filters that have a fixed list. */
const choices = {
  channel: {
    widget: 'conversations.widget',
    api: 'conversations.api',
    console: 'conversations.console',
  },
  mode: {
    model: 'conversations.model',
    waiting: 'conversations.waiting',
    person: 'conversations.person',
  },
  status: {
    unanswered: 'conversations.unanswered',
    failed: 'conversations.failed',
    incomplete: 'conversations.incomplete',
    cancelled: 'conversations.cancelled',
    in_progress: 'conversations.inProgress',
    completed: 'conversations.completed',
  },
  rating: { up: 'conversations.ratedUp', down: 'conversations.ratedDown' },
  reason: {
    ...reasonNames,
    max_output_tokens: 'conversations.reasonTokens',
    content_filter: 'conversations.reasonFilter',
    interrupted: 'conversations.reasonInterrupted',
    taken_over: 'conversations.reasonTakenOver',
  },
} as const

/** Returns the name of a filter's choice; undefined for filters without a fixed list. */
export function nameChoice(name: Filter, value: string): string | undefined {
  const named: Readonly<Record<string, PlainKey>> | undefined =
    name in choices ? choices[name as keyof typeof choices] : undefined
  const key = named?.[value]
  return key === undefined ? undefined : t(key)
}

const selects = [
  ['status', turnStatuses],
  ['mode', modes],
  ['rating', ['up', 'down']],
  ['reason', [...ratingReasons, ...turnReasons]],
  ['channel', channels],
] as const

export function FilterForm({ search, onChange }: FilterProps) {
  return (
    <Stack gap="xs">
      <AgentSelect value={search.agent} onChange={(agent) => onChange({ agent })} />
      <Group gap="xs" grow align="flex-end">
        {(['from', 'to'] as const).map((name) => (
          <TextInput
            key={name}
            type="date"
            data-autofocus={name === 'from' || undefined}
            size="xs"
            label={t(filterLabels[name])}
            value={search[name] ?? ''}
            onChange={({ currentTarget: { value } }) => onChange({ [name]: value || undefined })}
          />
        ))}
      </Group>
      <div className="desk-filter-grid">
        {selects.map(([name, values]) => (
          <NativeSelect
            key={name}
            size="xs"
            label={t(filterLabels[name])}
            value={search[name] ?? ''}
            data={[
              { value: '', label: t('conversations.any') },
              ...values.map((value) => ({ value, label: nameChoice(name, value) ?? value })),
            ]}
            onChange={({ currentTarget: { value } }) => onChange({ [name]: value || undefined })}
          />
        ))}
        {textFilters.map((name) => (
          <TextFilter
            key={name}
            label={t(filterLabels[name])}
            value={search[name] ?? ''}
            onChange={(value) => onChange({ [name]: value === '' ? undefined : value })}
          />
        ))}
        {numberFilters.map((name) => (
          <TextFilter
            key={name}
            label={t(filterLabels[name])}
            value={search[name] === undefined ? '' : String(search[name])}
            onChange={(value) =>
              onChange({ [name]: Number(value) > 0 ? Math.floor(Number(value)) : undefined })
            }
          />
        ))}
      </div>
    </Stack>
  )
}

interface TextFilterProps {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
}

/**
 * Applies its text when the user leaves the field or presses Enter, so that no request contains a partial
 * word.
 */
function TextFilter({ label, value, onChange }: TextFilterProps) {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  const apply = () => {
    if (text.trim() !== value) onChange(text.trim())
  }
  return (
    <TextInput
      size="xs"
      label={label}
      maxLength={200}
      value={text}
      onChange={(event) => setText(event.currentTarget.value)}
      onBlur={apply}
      onKeyDown={(event) => event.key === 'Enter' && apply()}
    />
  )
}
