/** Narrows the audit log; what is chosen stands in the address. */
import { Button, Group, NativeSelect, TextInput } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import { actionGroups, actionNames, actions } from './audit-labels.ts'
import type { AdminSearch } from './search.ts'

export type Filters = Pick<AdminSearch, 'action' | 'actor' | 'target' | 'from' | 'to'>

interface AuditFiltersProps {
  readonly filters: Filters
  readonly onFilter: (filters: Filters) => void
}

const offered = [
  { value: '', label: 'Everything' },
  ...actionGroups.map((one) => ({
    group: one.group,
    items: one.actions.map((value) => ({ value, label: actionNames[value] })),
  })),
]

/** Actions and days are applied at once, texts with Enter or the button. */
export function AuditFilters({ filters, onFilter }: AuditFiltersProps) {
  const [actor, setActor] = useState(filters.actor ?? '')
  const [target, setTarget] = useState(filters.target ?? '')
  const typed = { actor: actor.trim() || undefined, target: target.trim() || undefined }
  const apply = (changed: Filters) => onFilter({ ...filters, ...typed, ...changed })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    apply({})
  }
  const isAny = Object.values(filters).some((value) => value !== undefined)
  return (
    <form onSubmit={submit} aria-label="Filters">
      <div className="audit-filters">
        <NativeSelect
          label="Action"
          data={offered}
          value={filters.action ?? ''}
          onChange={({ currentTarget: { value } }) => apply({ action: actions.find((one) => one === value) })}
        />
        <TextInput
          label="By"
          placeholder="E-mail address or key"
          value={actor}
          onChange={(event) => setActor(event.currentTarget.value)}
        />
        <TextInput
          label="Of"
          placeholder="Id of a key, agent, file"
          value={target}
          onChange={(event) => setTarget(event.currentTarget.value)}
        />
        <Day label="From" value={filters.from} onPick={(from) => apply({ from })} />
        <Day label="To" value={filters.to} onPick={(to) => apply({ to })} />
        <Group gap={4} wrap="nowrap">
          <Button type="submit" variant="default">
            Filter
          </Button>
          {isAny ? (
            <Button variant="subtle" px="xs" onClick={() => onFilter({})}>
              Clear
            </Button>
          ) : null}
        </Group>
      </div>
    </form>
  )
}

interface DayProps {
  readonly label: string
  readonly value: string | undefined
  readonly onPick: (day: string | undefined) => void
}

function Day({ label, value, onPick }: DayProps) {
  return (
    <TextInput
      type="date"
      label={label}
      value={value ?? ''}
      onChange={(event) => onPick(event.currentTarget.value || undefined)}
    />
  )
}
