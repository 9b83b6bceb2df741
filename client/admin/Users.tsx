/** Lists all users who have signed in, and their keys. */

import { Badge, Code, Group, Menu, Stack, Text } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import type { Outputs } from '../api.ts'
import { api } from '../api.ts'
import type { Column } from '../components/DataTable.tsx'
import { ListView } from '../components/list/ListView.tsx'
import { Empty } from '../components/QueryStates.tsx'
import { Ago, TextLink } from '../components/text.tsx'
import { t } from '../strings/language.ts'
import type { TabProps } from './Budget.tsx'

type User = Outputs['admin']['users']['data'][number]
const PAGE_SIZE = 50

export function Users({ search, change, go }: TabProps) {
  const { q, after, order } = search
  const sort = userSorts.find((one) => one === search.sort)
  const query = useQuery({
    queryKey: ['admin', 'users', q, sort, order, after],
    queryFn: () => api.admin.users.query({ limit: PAGE_SIZE, q, sort, order, after }),
    placeholderData: keepPreviousData,
  })
  return (
    <ListView
      label={t('admin.users')}
      items="users"
      columns={columns}
      query={query}
      idOf={({ id }) => id}
      nameOf={({ email }) => email}
      search={{ q, sort, order, after }}
      onSearch={change}
      sorting={{ sort: 'created', order: 'desc' }}
      placeholder={t('admin.searchUsers')}
      menu={({ id, email }) => (
        <>
          <Menu.Item onClick={() => go({ tab: 'keys', user: id })}>{t('admin.viewKeys')}</Menu.Item>
          <Menu.Item onClick={() => go({ tab: 'audit', actor: email })}>{t('admin.viewAuditLog')}</Menu.Item>
        </>
      )}
      empty={
        <Empty icon="admin" title={t('admin.noUsers')}>
          {t('admin.noUsersHelp')}
        </Empty>
      }
    />
  )
}

const userSorts = ['created', 'email', 'last_seen'] as const

const columns: readonly Column<User>[] = [
  { name: 'admin.user', isMain: true, sort: 'email', render: (user) => <Who {...user} /> },
  { name: 'keys.title', render: (user) => <OwnKeys {...user} /> },
  {
    name: 'admin.firstSeen',
    sort: 'created',
    firstOrder: 'desc',
    render: ({ created_at: at }) => <Ago seconds={at} />,
  },
  {
    name: 'admin.lastSeen',
    sort: 'last_seen',
    firstOrder: 'desc',
    render: ({ last_seen_at: at }) => <Ago seconds={at} />,
  },
  { name: 'conversations.id', isHidden: true, render: ({ id }) => <Code>{id}</Code> },
]

function Who({ name, email, is_administrator: isAdministrator }: User) {
  return (
    <Stack gap={0}>
      <Group gap={8}>
        <Text span size="sm" fw={500}>
          {name === '' ? email : name}
        </Text>
        {isAdministrator ? (
          <Badge variant="light" className="badge-accent" tt="none">
            {t('admin.administrator')}
          </Badge>
        ) : null}
      </Group>
      <Text span size="xs" c="dimmed">
        {email}
      </Text>
    </Stack>
  )
}

/** Lists the user's keys; each links to its usage. */
function OwnKeys({ keys }: Pick<User, 'keys'>) {
  if (keys.length === 0) return t('common.none')
  return (
    <Stack gap={0}>
      {keys.map(({ id, name, is_active: isActive }) => (
        <Text key={id} span size="sm">
          <TextLink to="/admin" search={{ tab: 'usage', key: id }} size="sm" underline="always">
            {name}
          </TextLink>{' '}
          {isActive ? (
            <Text span size="xs" c="dimmed">
              {t('admin.activeKey')}
            </Text>
          ) : null}
        </Text>
      ))}
    </Stack>
  )
}
