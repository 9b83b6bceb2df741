/** Lists the user's parent keys, and lets them create, select, rotate, revoke and claim keys. */
import { Badge, Button, Group, Menu, Text } from '@mantine/core'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import type { Column } from '../components/DataTable.tsx'
import { ConfirmDialog, Dialog } from '../components/Dialog.tsx'
import { ListView } from '../components/list/ListView.tsx'
import { Empty } from '../components/QueryStates.tsx'
import { Ago } from '../components/text.tsx'
import { changeSearch, type KeysSearch } from '../search.ts'
import { Icon } from '../shell/icons.tsx'
import { useChooseKey } from '../shell/KeySwitch.tsx'
import { showDone } from '../shell/toast.tsx'
import { type Me, useMe } from '../shell/use-me.ts'
import { t } from '../strings/language.ts'
import { ClaimKey } from './ClaimKey.tsx'
import { KeyState } from './KeyState.tsx'
import { CreateKey, RotateKey, revokeKey, rotateParentKey, useRefreshAll } from './NewKey.tsx'

type Key = Me['keys'][number]
type Doing = 'claim' | { readonly rotate: Key } | { readonly revoke: Key }

export function ParentKeys() {
  const { keys } = useMe()
  const { q, sort, order, add } = useSearch({ from: '/shell/keys' })
  const search = { q, sort, order }
  const navigate = useNavigate({ from: '/keys' })
  const [doing, setDoing] = useState<Doing>()
  const setCreating = (isOpen: boolean) =>
    void navigate({ search: (now) => ({ ...now, add: isOpen ? true : undefined }) })
  return (
    <>
      <Group justify="flex-end" gap="xs" mb="sm">
        <Button variant="default" onClick={() => setDoing('claim')}>
          {t('keys.claimKey')}
        </Button>
        <Button leftSection={<Icon name="plus" size={16} />} onClick={() => setCreating(true)}>
          {t('keys.createKey')}
        </Button>
      </Group>
      <ListView
        label={t('keys.parentKeys')}
        items="parentKeys"
        columns={columns}
        query={{ data: { data: selectKeys(keys, search) }, error: null, refetch: () => undefined }}
        idOf={({ id }) => id}
        nameOf={({ name }) => name}
        search={search}
        onSearch={(changes) =>
          void navigate({ search: (now) => changeSearch(now, changes), replace: 'q' in changes })
        }
        sorting={{ sort: 'created', order: 'desc' }}
        placeholder={t('keys.searchParent')}
        menu={(key) => <KeyMenuItems keyRow={key} setDoing={setDoing} />}
        empty={
          <Empty icon="keys" title={t('keys.noParentKeys')}>
            {t('keys.noParentKeysHelp')}
          </Empty>
        }
      />
      <Dialog title={t('keys.createParentKey')} isOpen={add === true} onClose={() => setCreating(false)}>
        <CreateKey onClose={() => setCreating(false)} />
      </Dialog>
      <KeyDialogs doing={doing} onClose={() => setDoing(undefined)} />
    </>
  )
}

const sorts = {
  created: ({ created_at: at }: Key) => at,
  name: ({ name }: Key) => name.toLowerCase(),
  last_used: ({ last_used_at: at }: Key) => at ?? 0,
} as const

/** Searches and sorts in the browser, because the user's keys are always loaded. */
function selectKeys(keys: readonly Key[], { q = '', sort = 'created', order = 'desc' }: KeysSearch): Key[] {
  const text = q.toLowerCase()
  const read = sorts[sort]
  const sign = order === 'asc' ? 1 : -1
  return keys
    .filter(({ name, key_hint: hint }) => `${name} ${hint}`.toLowerCase().includes(text))
    .toSorted((one, other) => sign * (read(one) < read(other) ? -1 : read(one) > read(other) ? 1 : 0))
}

const columns: readonly Column<Key>[] = [
  { name: 'keys.name', isMain: true, sort: 'name', render: (key) => <KeyName {...key} /> },
  {
    name: 'keys.key',
    render: ({ key_hint }) => (
      <Text span ff="monospace" size="xs">
        {key_hint}
      </Text>
    ),
  },
  {
    name: 'keys.created',
    sort: 'created',
    firstOrder: 'desc',
    render: ({ created_at }) => <Ago seconds={created_at} />,
  },
  {
    name: 'keys.lastUsed',
    sort: 'last_used',
    firstOrder: 'desc',
    render: ({ last_used_at: at }) => (at === null ? t('common.never') : <Ago seconds={at} />),
  },
]

function KeyName(key: Key) {
  const { name, is_active: isActive, is_automatic: isAutomatic } = key
  return (
    <Group gap={8}>
      <Text span size="sm" fw={500}>
        {name}
      </Text>
      {isActive ? (
        <Badge variant="light" className="badge-accent" tt="none">
          {t('keys.active')}
        </Badge>
      ) : null}
      {isAutomatic ? (
        <Badge variant="default" tt="none" title={t('keys.automaticAbout')}>
          {t('keys.automatic')}
        </Badge>
      ) : null}
      <KeyState {...key} />
    </Group>
  )
}

function KeyMenuItems({ keyRow: key, setDoing }: { keyRow: Key; setDoing: (doing: Doing) => void }) {
  const choose = useChooseKey()
  return (
    <>
      {key.is_active ? null : (
        <Menu.Item onClick={() => choose.mutate(key.id)}>{t('keys.makeActive')}</Menu.Item>
      )}
      <Menu.Item onClick={() => setDoing({ rotate: key })}>{t('keys.rotateMenu')}</Menu.Item>
      <Menu.Item className="danger-text" onClick={() => setDoing({ revoke: key })}>
        {t('keys.revokeMenu')}
      </Menu.Item>
    </>
  )
}

function KeyDialogs({ doing, onClose }: { doing: Doing | undefined; onClose: () => void }) {
  const refreshAll = useRefreshAll()
  const revoke = async (id: string) => {
    await revokeKey(id)
    await refreshAll()
    showDone(t('keys.keyRevoked'))
  }
  const rotated = typeof doing === 'object' && 'rotate' in doing ? doing.rotate : undefined
  const revoked = typeof doing === 'object' && 'revoke' in doing ? doing.revoke : undefined
  return (
    <>
      <Dialog title={t('keys.claimParentKey')} isOpen={doing === 'claim'} onClose={onClose}>
        <ClaimKey onClose={onClose} />
      </Dialog>
      <Dialog
        title={t('keys.rotateNamed', { name: rotated?.name ?? '' })}
        isOpen={rotated !== undefined}
        onClose={onClose}
      >
        <RotateKey
          rotate={(seconds) => rotateParentKey(rotated?.id ?? '', seconds)}
          isShownOnce
          onClose={onClose}
        />
      </Dialog>
      <ConfirmDialog
        title={t('keys.revokeNamed', { name: revoked?.name ?? '' })}
        isOpen={revoked !== undefined}
        onClose={onClose}
        onConfirm={() => revoke(revoked?.id ?? '')}
        action={t('keys.revokeKey')}
        isDangerous
        typed={revoked?.name ?? ''}
      >
        {t('keys.revokeLoss')}
      </ConfirmDialog>
    </>
  )
}
