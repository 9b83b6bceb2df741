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
import { t } from '../strings/language.ts'
import { actionGroups, actions, nameAction } from './audit-labels.ts'
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
        label={t('admin.auditLog')}
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
            <Menu.Item onClick={() => go({ tab: 'audit', actor: by })}>{t('admin.moreByActor')}</Menu.Item>
            <Menu.Item onClick={() => go({ tab: 'audit', target: id })}>
              {t('admin.moreAboutTarget')}
            </Menu.Item>
          </>
        )}
        empty={
          <Empty icon="admin" title={t('admin.noEntries')}>
            {t('admin.noEntriesHelp')}
          </Empty>
        }
      />
    </Stack>
  )
}

const actorKinds = {
  parent_key: 'admin.actorKey',
  token: 'admin.actorToken',
  command: 'admin.actorCommand',
  service: 'admin.actorService',
} as const

function nameActor({ actor_kind: kind, actor }: AuditEvent): string {
  return kind === 'user' ? actor : t(actorKinds[kind], { name: actor })
}

const columns: readonly Column<AuditEvent>[] = [
  {
    name: 'admin.action',
    isMain: true,
    render: ({ action }) => (
      <Text span size="sm" fw={500}>
        {nameAction(action)}
      </Text>
    ),
  },
  { name: 'admin.target', render: (event) => <Target {...event} /> },
  { name: 'admin.actor', render: nameActor },
  { name: 'admin.ipAddress', render: ({ client_address: address }) => address ?? '–' },
  {
    name: 'usage.time',
    sort: 'created',
    firstOrder: 'desc',
    render: ({ created_at: at }) => <Ago seconds={at} />,
  },
  {
    name: 'usage.requestId',
    isHidden: true,
    render: ({ request_id: id }) => (id === null ? '–' : <Code>{id}</Code>),
  },
  { name: 'conversations.details', render: ({ details }) => <Details details={details} /> },
]

function Target({ target_kind: kind, target_id: id }: AuditEvent) {
  return (
    <Text span size="sm">
      {t(`audit.target.${kind}`)} <Code>{id}</Code>
    </Text>
  )
}

function Details({ details }: Pick<AuditEvent, 'details'>) {
  const entries = Object.entries(details)
  if (entries.length === 0) return '–'
  return (
    <details className="audit-details">
      <summary>{t('usage.show')}</summary>
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
  { value: '', label: t('admin.allActions') },
  ...actionGroups.map((one) => ({
    group: t(one.group),
    items: one.actions.map((value) => ({ value, label: t(`audit.${value}`) })),
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
    <form onSubmit={submit} aria-label={t('admin.filters')}>
      <div className="audit-filters">
        <NativeSelect
          label={t('admin.action')}
          data={offered}
          value={filters.action ?? ''}
          onChange={({ currentTarget: { value } }) => apply({ action: actions.find((one) => one === value) })}
        />
        <TextInput
          label={t('admin.actor')}
          placeholder={t('admin.actorHint')}
          value={actor}
          onChange={(event) => setActor(event.currentTarget.value)}
        />
        <TextInput
          label={t('admin.target')}
          placeholder={t('admin.targetHint')}
          value={target}
          onChange={(event) => setTarget(event.currentTarget.value)}
        />
        <Day label={t('usage.from')} value={filters.from} onPick={(from) => apply({ from })} />
        <Day label={t('usage.to')} value={filters.to} onPick={(to) => apply({ to })} />
        <Group gap={4} wrap="nowrap">
          <Button type="submit" variant="default">
            {t('admin.filter')}
          </Button>
          {isAny ? (
            <Button variant="subtle" px="xs" onClick={() => onFilter({})}>
              {t('admin.clear')}
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
