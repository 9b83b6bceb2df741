/** The audit log: who did what to which key, policy, agent or file. */
import { Code, Stack, Text } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { api } from '../api.ts'
import { Ago } from '../components/Ago.tsx'
import { type Column, DataTable } from '../components/DataTable.tsx'
import { nextOf, Pager } from '../components/Pager.tsx'
import { Empty, Failed, Loading } from '../components/QueryStates.tsx'
import type { Outputs } from '../types.ts'
import { AuditFilters } from './AuditFilters.tsx'
import { nameAction } from './audit-labels.ts'
import type { TabProps } from './tab.ts'

type AuditEvent = Outputs['admin']['audit']['data'][number]
const PAGE_SIZE = 25

export function Audit({ search, go }: TabProps) {
  const { action, actor, target, from, to, after } = search
  const filters = { action, actor, target, from, to }
  const { data, error, refetch } = useQuery({
    queryKey: ['admin', 'audit', filters, after],
    queryFn: () => api.admin.audit.query({ ...filters, limit: PAGE_SIZE, after }),
    placeholderData: keepPreviousData,
  })
  return (
    <Stack gap="md">
      <AuditFilters
        key={JSON.stringify(filters)}
        filters={filters}
        onFilter={(next) => go({ tab: 'audit', ...next })}
      />
      {error !== null ? <Failed error={error} what="The audit log" retry={() => void refetch()} /> : null}
      {data === undefined && error === null ? <Loading what="the audit log" rows={6} /> : null}
      {data === undefined || error !== null ? null : <Events events={data.data} />}
      <Pager
        after={after}
        next={nextOf(data, ({ id }) => id)}
        onTurn={(next) => go({ tab: 'audit', ...filters, after: next })}
      />
    </Stack>
  )
}

function Events({ events }: { readonly events: readonly AuditEvent[] }) {
  if (events.length === 0) {
    return (
      <Empty icon="search" title="Nothing was written down">
        No action fits these filters. Take some of them away.
      </Empty>
    )
  }
  return <DataTable label="Audit log" columns={columns} rows={events} keyOf={({ id }) => id} />
}

const actorKinds = {
  parent_key: 'key',
  user: '',
  token: 'token of',
  command: 'command line of',
  service: 'the',
} as const

const columns: readonly Column<AuditEvent>[] = [
  {
    name: 'What',
    render: ({ action }) => (
      <Text span size="sm" fw={500}>
        {nameAction(action)}
      </Text>
    ),
  },
  { name: 'Of', render: (event) => <Target {...event} /> },
  { name: 'By', render: ({ actor_kind: kind, actor }) => `${actorKinds[kind]} ${actor}`.trim() },
  { name: 'Address', render: ({ client_address: address }) => address ?? '–' },
  { name: 'When', render: ({ created_at: at }) => <Ago seconds={at} /> },
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
