/** Shows the search, the quick views and the filters of the conversations. */
import { ActionIcon, Button, CloseButton, Group, Popover, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { agentNamesQuery } from '../../agents/queries.ts'
import { SearchField } from '../../components/list/SearchField.tsx'
import { renderDate } from '../../format.ts'
import type { ConversationFilters } from '../../search.ts'
import { Icon } from '../../shell/icons.tsx'
import { useWaiting } from '../../shell/waiting.ts'
import { t } from '../../strings/language.ts'
import { FilterForm, filterLabels, nameChoice } from './FilterForm.tsx'
import { changesOf, type FilterProps, isView, listApplied, type View, views } from './filters.ts'

export function FilterBar({ search, onChange }: FilterProps) {
  return (
    <div className="desk-filters">
      <Group gap={6} wrap="nowrap">
        <SearchField
          label={t('conversations.search')}
          placeholder={t('conversations.searchBy')}
          value={search.q ?? ''}
          onChange={(q) => onChange({ q: q === '' ? undefined : q })}
        />
        <FilterMenu search={search} onChange={onChange} />
      </Group>
      <Views search={search} onChange={onChange} />
      <AppliedFilters search={search} onChange={onChange} />
    </div>
  )
}

function Views({ search, onChange }: FilterProps) {
  const { count } = useWaiting()
  const labelOf = ({ name, label }: View) =>
    name === 'waiting' && count > 0 ? t('conversations.waitingCount', { count }) : t(label)
  return (
    <Group className="desk-views" gap={2} role="group" aria-label={t('conversations.views')}>
      {views.map((view) => (
        <button
          key={view.name}
          type="button"
          className="desk-view"
          aria-pressed={isView(view, search)}
          data-waiting={(view.name === 'waiting' && count > 0) || undefined}
          onClick={() => onChange(changesOf(view))}
        >
          {labelOf(view)}
        </button>
      ))}
    </Group>
  )
}

function FilterMenu({ search, onChange }: FilterProps) {
  const [isOpen, { toggle, close }] = useDisclosure(false)
  const applied = listApplied(search).length
  const label = applied === 0 ? t('conversations.filters') : t('conversations.filtersSet', { count: applied })
  return (
    <Popover
      opened={isOpen}
      onChange={(open) => !open && close()}
      position="bottom-start"
      width={320}
      shadow="md"
      trapFocus
      returnFocus
    >
      <Popover.Target>
        <ActionIcon
          variant={applied === 0 ? 'default' : 'light'}
          size={34}
          aria-label={label}
          title={label}
          onClick={toggle}
        >
          <Icon name="filter" size={16} />
        </ActionIcon>
      </Popover.Target>
      <Popover.Dropdown className="desk-filter-form" aria-label={t('conversations.filters')}>
        <FilterForm search={search} onChange={onChange} />
      </Popover.Dropdown>
    </Popover>
  )
}

/** Lists the filters that the current view does not set, each with a button that removes it. */
function AppliedFilters({ search, onChange }: FilterProps) {
  const applied = listApplied(search)
  const { agent } = search
  const names = useQuery(agentNamesQuery(agent === undefined ? [] : [agent])).data
  if (applied.length === 0) return null
  const renderValue = (name: keyof ConversationFilters): string => {
    const value = String(search[name])
    if (name === 'agent') return names?.get(value) ?? value
    if (name === 'from' || name === 'to') return renderDate(Date.parse(`${value}T00:00:00`) / 1_000)
    if (name === 'assignee' && value === 'me') return t('conversations.assigneeMe')
    return nameChoice(name, value) ?? value
  }
  const without = (cleared: readonly (keyof ConversationFilters)[]) =>
    onChange(Object.fromEntries(cleared.map((name) => [name, undefined])))
  return (
    <Group gap={6} component="ul" className="desk-applied" aria-label={t('conversations.applied')}>
      {applied.map((name) => (
        <li key={name} className="desk-chip">
          <Text span size="xs" c="dimmed">
            {t(filterLabels[name])}
          </Text>
          <bdi>{renderValue(name)}</bdi>
          <CloseButton
            size="xs"
            aria-label={t('conversations.removeFilter', { name: t(filterLabels[name]) })}
            onClick={() => without([name])}
          />
        </li>
      ))}
      {applied.length > 1 ? (
        <li>
          <Button variant="subtle" size="compact-xs" onClick={() => without(applied)}>
            {t('common.clearFilters')}
          </Button>
        </li>
      ) : null}
    </Group>
  )
}
