/** Lists all parent keys with their owners and budgets, and lets administrators revoke them. */
import { ActionIcon, Group, Menu, Stack, Text } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../api.ts'
import { type Column, DataTable, nextOf, Pager } from '../components/DataTable.tsx'
import { ConfirmDialog, Dialog } from '../components/Dialog.tsx'
import { Failed, Loading } from '../components/QueryStates.tsx'
import { Ago } from '../components/text.tsx'
import { KeyState } from '../keys/KeyState.tsx'
import { Icon } from '../shell/icons.tsx'
import { showDone } from '../shell/toast.ts'
import type { AdminKey, TabProps } from './Budget.tsx'
import { BudgetForm, BudgetState } from './Budget.tsx'

type Doing = { readonly what: 'budget' | 'revoke'; readonly key: AdminKey }

const PAGE_SIZE = 25

export function Keys({ search: { after }, go }: TabProps) {
  const [doing, setDoing] = useState<Doing>()
  const { data, error, refetch } = useQuery({
    queryKey: ['admin', 'keys', after],
    queryFn: () => api.admin.keys.query({ limit: PAGE_SIZE, after }),
  })
  if (error !== null && data === undefined)
    return <Failed error={error} what="The keys" retry={() => void refetch()} />
  if (data === undefined) return <Loading what="the keys" />
  const actions: Column<AdminKey> = {
    name: 'Actions',
    isBare: true,
    render: (key) => <KeyMenu adminKey={key} go={go} setDoing={setDoing} />,
  }
  return (
    <>
      <DataTable
        label="All parent keys"
        columns={[...columns, actions]}
        rows={data.data}
        keyOf={({ id }) => id}
      />
      <Pager
        after={after}
        next={nextOf(data, ({ id }) => id)}
        onTurn={(next) => go({ tab: 'keys', after: next })}
      />
      <KeyDialogs doing={doing} onClose={() => setDoing(undefined)} />
    </>
  )
}

const columns: readonly Column<AdminKey>[] = [
  { name: 'Key', render: (key) => <KeyName {...key} /> },
  { name: 'Owner', render: ({ owner }) => owner ?? 'No owner' },
  { name: 'Agents', isNumber: true, render: ({ agents }) => agents },
  { name: 'Budget', render: ({ budget }) => <BudgetState budget={budget} /> },
  { name: 'Created', render: ({ created_at: at }) => <Ago seconds={at} /> },
  { name: 'Last used', render: ({ last_used_at: at }) => (at === null ? 'Never' : <Ago seconds={at} />) },
]

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

function KeyMenu({ adminKey: key, go, setDoing }: KeyMenuProps) {
  const isLive = key.revoked_at === null
  return (
    <Menu position="bottom-end" width={200}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={`Actions for ${key.name}`}>
          <Icon name="dots" />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => go({ tab: 'usage', key: key.id })}>View usage</Menu.Item>
        <Menu.Item onClick={() => go({ tab: 'audit', target: key.id })}>View audit log</Menu.Item>
        {isLive ? <Menu.Item onClick={() => setDoing({ what: 'budget', key })}>Set budget…</Menu.Item> : null}
        {isLive ? (
          <Menu.Item c="var(--bad)" onClick={() => setDoing({ what: 'revoke', key })}>
            Revoke…
          </Menu.Item>
        ) : null}
      </Menu.Dropdown>
    </Menu>
  )
}

function KeyDialogs({ doing, onClose }: { doing: Doing | undefined; onClose: () => void }) {
  const queries = useQueryClient()
  const key = doing?.key
  const revoke = async () => {
    await api.admin.revokeKey.mutate({ key_id: key?.id ?? '' })
    // Refetches everything, because the revoked key may be the active one.
    await queries.invalidateQueries()
    showDone('Key revoked')
  }
  return (
    <>
      <Dialog title={`Budget for ${key?.name}`} isOpen={doing?.what === 'budget'} onClose={onClose}>
        {key === undefined ? null : <BudgetForm adminKey={key} onClose={onClose} />}
      </Dialog>
      <ConfirmDialog
        title={`Revoke ${key?.name}`}
        isOpen={doing?.what === 'revoke'}
        onClose={onClose}
        onConfirm={revoke}
        action="Revoke key"
        isDangerous
        typed={key?.name ?? ''}
      >
        <Stack gap={4}>
          <Text size="sm">This key and the keys of all its agents stop working immediately.</Text>
          <Group gap={4}>
            <Text size="sm" c="dimmed">
              Owner: {key?.owner ?? 'none'}
            </Text>
          </Group>
        </Stack>
      </ConfirmDialog>
    </>
  )
}
