/** Lists all users who have signed in, and their keys. */
import { Badge, Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { Outputs } from '../api.ts'
import { api } from '../api.ts'
import { type Column, DataTable, nextOf, Pager } from '../components/DataTable.tsx'
import { Empty, Failed, Loading } from '../components/QueryStates.tsx'
import { Ago } from '../components/text.tsx'
import type { TabProps } from './Budget.tsx'

type User = Outputs['admin']['users']['data'][number]
const PAGE_SIZE = 25

export function Users({ search: { after }, go }: TabProps) {
  const { data, error, refetch } = useQuery({
    queryKey: ['admin', 'users', after],
    queryFn: () => api.admin.users.query({ limit: PAGE_SIZE, after }),
  })
  if (error !== null && data === undefined)
    return <Failed error={error} what="The users" retry={() => void refetch()} />
  if (data === undefined) return <Loading what="the users" />
  if (data.data.length === 0) {
    return (
      <Empty icon="admin" title="No users yet">
        Users appear here after they first sign in through the proxy or with a one-time link.
      </Empty>
    )
  }
  return (
    <>
      <DataTable label="Users" columns={columns} rows={data.data} keyOf={({ id }) => id} />
      <Pager
        after={after}
        next={nextOf(data, ({ id }) => id)}
        onTurn={(next) => go({ tab: 'users', after: next })}
      />
    </>
  )
}

const columns: readonly Column<User>[] = [
  { name: 'User', render: (user) => <Who {...user} /> },
  { name: 'Keys', render: ({ keys }) => <OwnKeys keys={keys} /> },
  { name: 'First seen', render: ({ created_at: at }) => <Ago seconds={at} /> },
  { name: 'Last seen', render: ({ last_seen_at: at }) => <Ago seconds={at} /> },
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
            Administrator
          </Badge>
        ) : null}
      </Group>
      <Text span size="xs" c="dimmed">
        {email}
      </Text>
    </Stack>
  )
}

function OwnKeys({ keys }: Pick<User, 'keys'>) {
  if (keys.length === 0) return 'None'
  return (
    <Stack gap={0}>
      {keys.map(({ id, name, is_active: isActive }) => (
        <Text key={id} span size="sm">
          {name}{' '}
          {isActive ? (
            <Text span size="xs" c="dimmed">
              (active)
            </Text>
          ) : null}
        </Text>
      ))}
    </Stack>
  )
}
