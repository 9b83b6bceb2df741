/** Shows the audit log with its filters. */
import { Button, Code, Group, Menu, NativeSelect, Stack, Text, TextInput } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import type { Outputs } from '../api.ts'
import { api } from '../api.ts'
import type { Column } from '../components/DataTable.tsx'
import { ListView } from '../components/list/ListView.tsx'
import { Empty } from '../components/QueryStates.tsx'
import { Ago } from '../components/text.tsx'
import type { AdminSearch } from '../search.ts'
import { actionGroups, actionNames, actions, nameAction } from './audit-labels.ts'
import type { TabProps } from './Budget.tsx'

type AuditEvent = Outputs['admin']['audit']['data'][number]
const PAGE_SIZE = 50

export function Audit({ search, change, go }: TabProps) {
  const { action, actor, target, from, to, order, after } = search
  const filters = { action, actor, target, from, to }
  const query = useQuery({
    queryKey: ['admin', 'audit', filters, order, after],
    queryFn: () => api.admin.audit.query({ ...filters, limit: PAGE_SIZE, order, after }),
    placeholderData: keepPreviousData,
  })
  return (
    <Stack gap="md">
      <AuditFilters
        key={JSON.stringify(filters)}
        filters={filters}
        onFilter={(next) => go({ tab: 'audit', ...next })}
      />
      <ListView
        label="Audit log"
        items="entries"
        columns={columns}
        query={query}
        idOf={({ id }) => id}
        nameOf={({ action: done, target_id: id }) => `${nameAction(done)} ${id}`}
        search={{ ...filters, order, after }}
        onSearch={change}
        sorting={{ sort: 'created', order: 'desc' }}
        menu={({ actor: by, target_id: id }) => (
          <>
            <Menu.Item onClick={() => go({ tab: 'audit', actor: by })}>More by this actor</Menu.Item>
            <Menu.Item onClick={() => go({ tab: 'audit', target: id })}>More about this target</Menu.Item>
          </>
        )}
        empty={
          <Empty icon="admin" title="No entries yet">
            Changes to keys, agents, files and uploads appear here.
          </Empty>
        }
      />
    </Stack>
  )
}

const actorKinds = {
  parent_key: 'parent key',
  user: '',
  token: 'token for artifact',
  command: 'command-line user',
  service: 'the',
} as const

const columns: readonly Column<AuditEvent>[] = [
  {
    name: 'Action',
    isMain: true,
    render: ({ action }) => (
      <Text span size="sm" fw={500}>
        {nameAction(action)}
      </Text>
    ),
  },
  { name: 'Target', render: (event) => <Target {...event} /> },
  { name: 'Actor', render: ({ actor_kind: kind, actor }) => `${actorKinds[kind]} ${actor}`.trim() },
  { name: 'IP address', render: ({ client_address: address }) => address ?? '–' },
  {
    name: 'Time',
    sort: 'created',
    firstOrder: 'desc',
    render: ({ created_at: at }) => <Ago seconds={at} />,
  },
  {
    name: 'Request ID',
    isHidden: true,
    render: ({ request_id: id }) => (id === null ? '–' : <Code>{id}</Code>),
  },
  { name: 'Details', render: ({ details }) => <Details details={details} /> },
]

function Target({ target_kind: kind, target_id: id }: AuditEvent) {
  return (
    <Text span size="sm">
      {kind} <Code>{id}</Code>
    </Text>
  )
}

function Details({ details }: Pick<AuditEvent, 'details'>) {
  const entries = Object.entries(details)
  if (entries.length === 0) return '–'
  return (
    <details className="audit-details">
      <summary>Show</summary>
      <pre>{JSON.stringify(details, undefined, 2)}</pre>
    </details>
  )
}

type Filters = Pick<AdminSearch, 'action' | 'actor' | 'target' | 'from' | 'to'>

interface AuditFiltersProps {
  readonly filters: Filters
  readonly onFilter: (filters: Filters) => void
}

const offered = [
  { value: '', label: 'All actions' },
  ...actionGroups.map((one) => ({
    group: one.group,
    items: one.actions.map((value) => ({ value, label: actionNames[value] })),
  })),
]

/** Applies action and date changes immediately, and text fields on submit. */
function AuditFilters({ filters, onFilter }: AuditFiltersProps) {
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
          label="Actor"
          placeholder="Email address or key"
          value={actor}
          onChange={(event) => setActor(event.currentTarget.value)}
        />
        <TextInput
          label="Target"
          placeholder="ID of a key, agent or file"
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
