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
import { keyStates } from '../search.ts'
import { Icon } from '../shell/icons.tsx'
import { showDone } from '../shell/toast.tsx'
import { t } from '../strings/language.ts'
import type { AdminKey, TabProps } from './Budget.tsx'
import { BudgetState } from './Budget.tsx'
import { OperatorBudgets } from './OperatorBudgets.tsx'

type Doing = { readonly what: 'budgets'; readonly key: AdminKey } | Revoking
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
        label={t('admin.allParentKeys')}
        items="keys"
        columns={columns}
        query={query}
        idOf={({ id }) => id}
        nameOf={({ name }) => name}
        search={{ q, sort, order, after, ...{ user, state } }}
        onSearch={change}
        sorting={{ sort: 'created', order: 'desc' }}
        placeholder={t('admin.searchKeys')}
        filters={filters}
        toolbar={
          user === undefined ? null : (
            <Button
              variant="light"
              size="xs"
              rightSection={<Icon name="cross" size={12} />}
              onClick={() => change({ user: undefined, after: undefined })}
            >
              {t('admin.keysOfOne')}
            </Button>
          )
        }
        bulk={[
          {
            label: t('keys.revokeMenu'),
            isDangerous: true,
            run: (keys) => {
              setDoing({ what: 'revoke', keys: keys.filter(isLive) })
              return undefined
            },
          },
        ]}
        menu={(key) => <KeyMenuItems adminKey={key} go={go} setDoing={setDoing} />}
        empty={
          <Empty icon="keys" title={t('admin.noKeys')}>
            {t('admin.noKeysHelp')}
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
    label: t('admin.state'),
    all: t('admin.allStates'),
    options: keyStates.map((value) => ({ value, label: t(`admin.${value}`) })),
  },
]

const columns: readonly Column<AdminKey>[] = [
  { name: 'keys.key', isMain: true, sort: 'name', render: (key) => <KeyName {...key} /> },
  { name: 'admin.owner', render: ({ owner }) => owner ?? t('admin.noOwner') },
  { name: 'shell.agents', isNumber: true, render: ({ agents }) => agents },
  { name: 'admin.budget', render: ({ budget }) => <BudgetState budget={budget} /> },
  {
    name: 'keys.created',
    sort: 'created',
    firstOrder: 'desc',
    render: ({ created_at: at }) => <Ago seconds={at} />,
  },
  {
    name: 'keys.lastUsed',
    sort: 'last_used',
    firstOrder: 'desc',
    render: ({ last_used_at: at }) => (at === null ? t('common.never') : <Ago seconds={at} />),
  },
  { name: 'conversations.id', isHidden: true, render: ({ id }) => <Code>{id}</Code> },
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
      <Menu.Item onClick={() => go({ tab: 'usage', key: key.id })}>{t('admin.viewUsage')}</Menu.Item>
      <Menu.Item onClick={() => go({ tab: 'usage', key: key.id, by: 'agent' })}>
        {t('admin.viewAgents')}
      </Menu.Item>
      <Menu.Item onClick={() => go({ tab: 'audit', target: key.id })}>{t('admin.viewAuditLog')}</Menu.Item>
      {isLive(key) ? (
        <Menu.Item onClick={() => setDoing({ what: 'budgets', key })}>{t('admin.setBudget')}</Menu.Item>
      ) : null}
      {isLive(key) ? (
        <Menu.Item className="danger-text" onClick={() => setDoing({ what: 'revoke', keys: [key] })}>
          {t('keys.revokeMenu')}
        </Menu.Item>
      ) : null}
    </>
  )
}

function KeyDialogs({ doing, onClose }: { doing: Doing | undefined; onClose: () => void }) {
  const queries = useQueryClient()
  const budgeted = doing?.what === 'budgets' ? doing.key : undefined
  const revoked = doing?.what === 'revoke' ? doing.keys : []
  const [first] = revoked
  const revoke = async () => {
    await Promise.all(revoked.map(({ id }) => api.admin.revokeKey.mutate({ key_id: id }))).finally(() =>
      // Refetches everything, because the revoked key may be the active one.
      queries.invalidateQueries(),
    )
    showDone(revoked.length === 1 ? t('keys.keyRevoked') : t('admin.keysRevoked'))
  }
  return (
    <>
      <Dialog
        title={t('admin.budgetFor', { name: budgeted?.name ?? '' })}
        isOpen={budgeted !== undefined}
        onClose={onClose}
        size="xl"
      >
        {budgeted === undefined ? null : <OperatorBudgets keyId={budgeted.id} onClose={onClose} />}
      </Dialog>
      <ConfirmDialog
        title={
          revoked.length > 1
            ? t('admin.revokeMany', { count: revoked.length })
            : t('keys.revokeNamed', { name: first?.name ?? '' })
        }
        isOpen={first !== undefined}
        onClose={onClose}
        onConfirm={revoke}
        action={revoked.length > 1 ? t('admin.revokeKeys') : t('keys.revokeKey')}
        isDangerous
        typed={revoked.length > 1 ? 'revoke' : (first?.name ?? '')}
      >
        {revoked.length > 1 ? (
          t('admin.revokeManyLoss')
        ) : (
          <Stack gap={4}>
            <Text size="sm">{t('admin.revokeOneLoss')}</Text>
            <Text size="sm" c="dimmed">
              {first?.owner == null ? t('admin.ownerNone') : t('admin.ownerIs', { name: first.owner })}
            </Text>
          </Stack>
        )}
      </ConfirmDialog>
    </>
  )
}
