/** Lists all parent keys with their owners and budgets, and lets administrators revoke them. */
import { Button, Code, Menu, Stack, Text } from '@mantine/core'
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../api.ts'
import type { Column } from '../components/DataTable.tsx'
import { ConfirmDialog, Dialog } from '../components/Dialog.tsx'
import { ListView } from '../components/list/ListView.tsx'
import { Empty } from '../components/QueryStates.tsx'
import { Ago } from '../components/text.tsx'
import { KeyState } from '../keys/KeyState.tsx'
import { Icon } from '../shell/icons.tsx'
import { showDone } from '../shell/toast.tsx'
import type { AdminKey, TabProps } from './Budget.tsx'
import { BudgetForm, BudgetState } from './Budget.tsx'

type Doing = { readonly what: 'budget'; readonly key: AdminKey } | Revoking
type Revoking = { readonly what: 'revoke'; readonly keys: readonly AdminKey[] }

const PAGE_SIZE = 50

export function Keys({ search, change, go }: TabProps) {
  const [doing, setDoing] = useState<Doing>()
  const { q, order, after, user, state } = search
  const sort = keySorts.find((one) => one === search.sort)
  const query = useQuery({
    queryKey: ['admin', 'keys', q, sort, order, after, user, state],
    queryFn: () => api.admin.keys.query({ limit: PAGE_SIZE, q, sort, order, after, user, state }),
    placeholderData: keepPreviousData,
  })
  return (
    <>
      <ListView
        label="All parent keys"
        items="keys"
        columns={columns}
        query={query}
        idOf={({ id }) => id}
        nameOf={({ name }) => name}
        search={{ q, sort, order, after, ...{ user, state } }}
        onSearch={change}
        sorting={{ sort: 'created', order: 'desc' }}
        placeholder="Search by name or ID"
        filters={filters}
        toolbar={
          user === undefined ? null : (
            <Button
              variant="light"
              size="xs"
              rightSection={<Icon name="cross" size={12} />}
              onClick={() => change({ user: undefined, after: undefined })}
            >
              Keys of one user
            </Button>
          )
        }
        bulk={[
          {
            label: 'Revoke…',
            isDangerous: true,
            run: (keys) => {
              setDoing({ what: 'revoke', keys: keys.filter(isLive) })
              return undefined
            },
          },
        ]}
        menu={(key) => <KeyMenuItems adminKey={key} go={go} setDoing={setDoing} />}
        empty={
          <Empty icon="keys" title="No keys yet">
            Users get a key when they first sign in.
          </Empty>
        }
      />
      <KeyDialogs doing={doing} onClose={() => setDoing(undefined)} />
    </>
  )
}

const keySorts = ['created', 'name', 'last_used'] as const

const filters = [
  {
    name: 'state',
    label: 'State',
    all: 'All states',
    options: [
      { value: 'active', label: 'Active' },
      { value: 'disabled', label: 'Disabled' },
      { value: 'expired', label: 'Expired' },
      { value: 'revoked', label: 'Revoked' },
    ],
  },
]

const columns: readonly Column<AdminKey>[] = [
  { name: 'Key', isMain: true, sort: 'name', render: (key) => <KeyName {...key} /> },
  { name: 'Owner', render: ({ owner }) => owner ?? 'No owner' },
  { name: 'Agents', isNumber: true, render: ({ agents }) => agents },
  { name: 'Budget', render: ({ budget }) => <BudgetState budget={budget} /> },
  {
    name: 'Created',
    sort: 'created',
    firstOrder: 'desc',
    render: ({ created_at: at }) => <Ago seconds={at} />,
  },
  {
    name: 'Last used',
    sort: 'last_used',
    firstOrder: 'desc',
    render: ({ last_used_at: at }) => (at === null ? 'Never' : <Ago seconds={at} />),
  },
  { name: 'ID', isHidden: true, render: ({ id }) => <Code>{id}</Code> },
]

function isLive({ revoked_at: at }: AdminKey): boolean {
  return at === null
}

function KeyName(key: AdminKey) {
  const { name, key_hint: hint } = key
  return (
    <Stack gap={0}>
      <Text span size="sm" fw={500}>
        {name}
      </Text>
      <Text span size="xs" c="dimmed" ff="monospace">
        {hint}
      </Text>
      <KeyState {...key} />
    </Stack>
  )
}

interface KeyMenuProps extends Pick<TabProps, 'go'> {
  readonly adminKey: AdminKey
  readonly setDoing: (doing: Doing) => void
}

function KeyMenuItems({ adminKey: key, go, setDoing }: KeyMenuProps) {
  return (
    <>
      <Menu.Item onClick={() => go({ tab: 'usage', key: key.id })}>View usage</Menu.Item>
      <Menu.Item onClick={() => go({ tab: 'usage', key: key.id, by: 'agent' })}>View agents</Menu.Item>
      <Menu.Item onClick={() => go({ tab: 'audit', target: key.id })}>View audit log</Menu.Item>
      {isLive(key) ? (
        <Menu.Item onClick={() => setDoing({ what: 'budget', key })}>Set budget…</Menu.Item>
      ) : null}
      {isLive(key) ? (
        <Menu.Item className="danger-text" onClick={() => setDoing({ what: 'revoke', keys: [key] })}>
          Revoke…
        </Menu.Item>
      ) : null}
    </>
  )
}

function KeyDialogs({ doing, onClose }: { doing: Doing | undefined; onClose: () => void }) {
  const queries = useQueryClient()
  const budgeted = doing?.what === 'budget' ? doing.key : undefined
  const revoked = doing?.what === 'revoke' ? doing.keys : []
  const [first] = revoked
  const revoke = async () => {
    await Promise.all(revoked.map(({ id }) => api.admin.revokeKey.mutate({ key_id: id }))).finally(() =>
      // Refetches everything, because the revoked key may be the active one.
      queries.invalidateQueries(),
    )
    showDone(revoked.length === 1 ? 'Key revoked' : 'Keys revoked')
  }
  return (
    <>
      <Dialog title={`Budget for ${budgeted?.name}`} isOpen={budgeted !== undefined} onClose={onClose}>
        {budgeted === undefined ? null : <BudgetForm adminKey={budgeted} onClose={onClose} />}
      </Dialog>
      <ConfirmDialog
        title={revoked.length > 1 ? `Revoke ${revoked.length} keys` : `Revoke ${first?.name}`}
        isOpen={first !== undefined}
        onClose={onClose}
        onConfirm={revoke}
        action={revoked.length > 1 ? 'Revoke keys' : 'Revoke key'}
        isDangerous
        typed={revoked.length > 1 ? 'revoke' : (first?.name ?? '')}
      >
        {revoked.length > 1 ? (
          'These keys and the keys of all their agents stop working immediately.'
        ) : (
          <Stack gap={4}>
            <Text size="sm">This key and the keys of all its agents stop working immediately.</Text>
            <Text size="sm" c="dimmed">
              Owner: {first?.owner ?? 'none'}
            </Text>
          </Stack>
        )}
      </ConfirmDialog>
    </>
  )
}
