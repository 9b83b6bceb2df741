/**
 * Selects an agent by name. The server performs the search, so that the field works with thousands of agents.
 */
import { Select } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { t } from '../strings/language.ts'
import { agentNamesQuery, agentPageQuery } from './queries.ts'

const SEARCH_PAUSE_MS = 150

interface AgentSelectProps {
  /** Visible label; undefined for a filter. */
  readonly label?: string
  readonly description?: string
  readonly placeholder?: string
  readonly isRequired?: boolean
  readonly error?: string | undefined
  readonly value: string | undefined
  readonly onChange: (id: string | undefined) => void
}

export function AgentSelect({
  label,
  description,
  placeholder,
  isRequired,
  error,
  value,
  onChange,
}: AgentSelectProps) {
  const [text, setText] = useState('')
  const names = useQuery(agentNamesQuery(value === undefined ? [] : [value])).data
  const name = value === undefined ? undefined : (names?.get(value) ?? value)
  const [q] = useDebouncedValue(text === name ? '' : text.trim().slice(0, 200), SEARCH_PAUSE_MS)
  const { data } = useQuery({
    ...agentPageQuery(q === '' ? {} : { q }),
    placeholderData: keepPreviousData,
  })
  const found = (data?.data ?? []).map((agent) => ({ value: agent.id, label: agent.name }))
  const isListed = value === undefined || found.some((agent) => agent.value === value)
  return (
    <Select
      {...(label === undefined
        ? {
            'aria-label': t('common.agent'),
            className: 'list-filter',
            'data-set': value !== undefined || undefined,
          }
        : { label, description, error, withAsterisk: isRequired })}
      placeholder={placeholder ?? t('common.allAgents')}
      searchable
      clearable
      clearButtonProps={{ 'aria-label': t('common.showAllAgents') }}
      nothingFoundMessage={t('common.noAgentFound')}
      value={value ?? null}
      data={isListed ? found : [...found, { value, label: name ?? value }]}
      filter={({ options }) => options}
      searchValue={text}
      onSearchChange={setText}
      onChange={(id) => onChange(id ?? undefined)}
    />
  )
}
