/** Shows and selects the active parent key, and signs out. */
import { Button, Menu, Text } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { api } from '../api.ts'
import { t } from '../strings/language.ts'
import { shellActions } from './FailureNotice.tsx'
import { Icon } from './icons.tsx'
import { useMe } from './use-me.ts'

/** `isWide` fills the sidebar's width. */
export function KeySwitch({ isWide = false }: { readonly isWide?: boolean }) {
  const me = useMe()
  const choose = useChooseKey()
  const signOut = useSignOut()
  const active = me.keys.find((key) => key.is_active)
  return (
    <Menu position={isWide ? 'bottom-start' : 'bottom-end'} width={260}>
      <Menu.Target>
        <Button
          variant="default"
          size="sm"
          justify="space-between"
          fullWidth={isWide}
          maw={isWide ? undefined : 160}
          flex="none"
          rightSection={<Icon name="chevron" size={14} />}
        >
          <Text span truncate size="sm">
            {active?.name ?? me.parent_key}
          </Text>
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {me.user === null ? t('shell.signedInWithKey') : t('shell.activeKeyOf', { name: me.user.name })}
        </Menu.Label>
        {me.keys.map(({ id, name, key_hint, is_active }) => (
          <Menu.Item
            key={id}
            rightSection={is_active ? <Icon name="check" size={16} /> : null}
            onClick={() => choose.mutate(id)}
          >
            {name}
            <Text c="dimmed" size="xs" ff="monospace">
              {key_hint}
            </Text>
          </Menu.Item>
        ))}
        {me.signed_in_by === 'link' ? (
          <>
            <Menu.Divider />
            <Menu.Item leftSection={<Icon name="signOut" size={16} />} onClick={() => signOut.mutate()}>
              {t('shell.signOut')}
            </Menu.Item>
          </>
        ) : null}
      </Menu.Dropdown>
    </Menu>
  )
}

/** Refetches all data, because all of it belongs to the active key. */
export function useChooseKey() {
  const queries = useQueryClient()
  return useMutation({
    mutationKey: shellActions,
    mutationFn: (id: string) => api.manager.activeKey.mutate({ parent_key_id: id }),
    onSuccess: () => queries.invalidateQueries(),
  })
}

function useSignOut() {
  return useMutation({
    mutationKey: shellActions,
    mutationFn: () => api.manager.signOut.mutate(),
    onSuccess: () => window.location.assign('/console/sign-in'),
  })
}
