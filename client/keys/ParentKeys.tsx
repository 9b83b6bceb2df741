/** Lists the user's parent keys, and lets them create, select, rotate, revoke and claim keys. */
import { ActionIcon, Badge, Button, Group, Menu, Text } from '@mantine/core'
import { useState } from 'react'
import { type Column, DataTable } from '../components/DataTable.tsx'
import { ConfirmDialog, Dialog } from '../components/Dialog.tsx'
import { Empty } from '../components/QueryStates.tsx'
import { Ago } from '../components/text.tsx'
import { Icon } from '../shell/icons.tsx'
import { useChooseKey } from '../shell/KeySwitch.tsx'
import { showDone } from '../shell/toast.ts'
import { type Me, useMe } from '../shell/use-me.ts'
import { ClaimKey } from './ClaimKey.tsx'
import { KeyState } from './KeyState.tsx'
import { CreateKey, RotateKey, revokeKey, rotateParentKey, useRefreshAll } from './NewKey.tsx'

type Key = Me['keys'][number]
type Doing = 'create' | 'claim' | { readonly rotate: Key } | { readonly revoke: Key }

export function ParentKeys() {
  const { keys } = useMe()
  const [doing, setDoing] = useState<Doing>()
  return (
    <>
      <Group justify="flex-end" gap="xs" mb="sm">
        <Button variant="default" onClick={() => setDoing('claim')}>
          Claim key
        </Button>
        <Button leftSection={<Icon name="plus" size={16} />} onClick={() => setDoing('create')}>
          Create key
        </Button>
      </Group>
      {keys.length === 0 ? (
        <Empty icon="keys" title="No parent keys">
          Create a key for your server, or claim an existing one.
        </Empty>
      ) : (
        <DataTable label="Parent keys" columns={columnsOf(setDoing)} rows={keys} keyOf={({ id }) => id} />
      )}
      <KeyDialogs doing={doing} onClose={() => setDoing(undefined)} />
    </>
  )
}

function columnsOf(setDoing: (doing: Doing) => void): Column<Key>[] {
  return [
    { name: 'Name', render: (key) => <KeyName {...key} /> },
    {
      name: 'Key',
      render: ({ key_hint }) => (
        <Text span ff="monospace" size="xs">
          {key_hint}
        </Text>
      ),
    },
    { name: 'Created', render: ({ created_at }) => <Ago seconds={created_at} /> },
    {
      name: 'Last used',
      render: ({ last_used_at: at }) => (at === null ? 'Never' : <Ago seconds={at} />),
    },
    { name: 'Actions', isBare: true, render: (key) => <KeyMenu keyRow={key} setDoing={setDoing} /> },
  ]
}

function KeyName(key: Key) {
  const { name, is_active: isActive, is_automatic: isAutomatic } = key
  return (
    <Group gap={8}>
      <Text span size="sm" fw={500}>
        {name}
      </Text>
      {isActive ? (
        <Badge variant="light" className="badge-accent" tt="none">
          Active
        </Badge>
      ) : null}
      {isAutomatic ? (
        <Badge
          variant="default"
          tt="none"
          title="Created when you first signed in. Revoked when you claim another key."
        >
          Automatic
        </Badge>
      ) : null}
      <KeyState {...key} />
    </Group>
  )
}

function KeyMenu({ keyRow: key, setDoing }: { keyRow: Key; setDoing: (doing: Doing) => void }) {
  const choose = useChooseKey()
  return (
    <Menu position="bottom-end" width={200}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={`Actions for ${key.name}`}>
          <Icon name="dots" />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {key.is_active ? null : <Menu.Item onClick={() => choose.mutate(key.id)}>Make active</Menu.Item>}
        <Menu.Item onClick={() => setDoing({ rotate: key })}>Rotate…</Menu.Item>
        <Menu.Item c="var(--bad)" onClick={() => setDoing({ revoke: key })}>
          Revoke…
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}

function KeyDialogs({ doing, onClose }: { doing: Doing | undefined; onClose: () => void }) {
  const refreshAll = useRefreshAll()
  const revoke = async (id: string) => {
    await revokeKey(id)
    await refreshAll()
    showDone('Key revoked')
  }
  const rotated = typeof doing === 'object' && 'rotate' in doing ? doing.rotate : undefined
  const revoked = typeof doing === 'object' && 'revoke' in doing ? doing.revoke : undefined
  return (
    <>
      <Dialog title="Create parent key" isOpen={doing === 'create'} onClose={onClose}>
        <CreateKey onClose={onClose} />
      </Dialog>
      <Dialog title="Claim parent key" isOpen={doing === 'claim'} onClose={onClose}>
        <ClaimKey onClose={onClose} />
      </Dialog>
      <Dialog title={`Rotate ${rotated?.name}`} isOpen={rotated !== undefined} onClose={onClose}>
        <RotateKey
          rotate={(seconds) => rotateParentKey(rotated?.id ?? '', seconds)}
          isShownOnce
          onClose={onClose}
        />
      </Dialog>
      <ConfirmDialog
        title={`Revoke ${revoked?.name}`}
        isOpen={revoked !== undefined}
        onClose={onClose}
        onConfirm={() => revoke(revoked?.id ?? '')}
        action="Revoke key"
        isDangerous
        typed={revoked?.name ?? ''}
      >
        This key and the keys of all its agents stop working immediately. This cannot be undone.
      </ConfirmDialog>
    </>
  )
}
