/** Lists the visitors of the active key's agents, last seen first. */
import './visitors.css'
import { Button, Code, Group, Stack, Text } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { AgentSelect } from '../agents/AgentSelect.tsx'
import type { Column } from '../components/DataTable.tsx'
import { ListView } from '../components/list/ListView.tsx'
import { PageHeader } from '../components/PageHeader.tsx'
import { Empty } from '../components/QueryStates.tsx'
import { Ago, TextLink } from '../components/text.tsx'
import { renderNumber } from '../format.ts'
import { changeSearch } from '../search.ts'
import { useMe } from '../shell/use-me.ts'
import { t } from '../strings/language.ts'
import { rich } from '../strings/rich.tsx'
import { IdentityBadge } from './IdentityBadge.tsx'
import { nameOfVisitor, shortId, type Visitor, visitorPageQuery } from './queries.ts'

export function VisitorsPage() {
  const search = useSearch({ from: '/shell/visitors' })
  const navigate = useNavigate({ from: '/visitors' })
  const change = (changes: Readonly<Record<string, string | undefined>>) =>
    void navigate({ search: (now) => changeSearch(now, changes), replace: 'q' in changes })
  const query = useQuery({ ...visitorPageQuery(search), placeholderData: keepPreviousData })
  return (
    <>
      <PageHeader title={t('visitors.title')} about={t('visitors.about')} />
      <ListView
        label={t('visitors.title')}
        items="visitors"
        columns={columns}
        query={query}
        idOf={({ id }) => id}
        nameOf={nameOfVisitor}
        search={search}
        onSearch={change}
        sorting={{ sort: 'seen', order: 'desc' }}
        placeholder={t('visitors.searchBy')}
        toolbar={
          <AgentSelect value={search.agent} onChange={(agent) => change({ agent, after: undefined })} />
        }
        empty={<NoVisitors title={t('visitors.none')} />}
        noMatches={
          search.q === undefined && search.agent !== undefined ? (
            <NoVisitors title={t('visitors.noneOfAgent')} />
          ) : undefined
        }
      />
    </>
  )
}

const columns: readonly Column<Visitor>[] = [
  { name: 'visitors.visitor', isMain: true, render: (visitor) => <VisitorLink {...visitor} /> },
  { name: 'visitors.identity', render: ({ kind }) => <IdentityBadge kind={kind} /> },
  {
    name: 'visitors.email',
    isHidden: true,
    render: ({ email }) => email ?? <span className="quiet">–</span>,
  },
  {
    name: 'visitors.conversations',
    isNumber: true,
    render: ({ conversations }) => renderNumber(conversations),
  },
  { name: 'visitors.lastSeen', render: ({ seen_at: at }) => <Ago seconds={at} /> },
  { name: 'visitors.firstSeen', render: ({ created_at: at }) => <Ago seconds={at} /> },
  { name: 'visitors.id', isHidden: true, render: ({ id }) => <Code>{id}</Code> },
]

/** Shows a name, and below it what distinguishes visitors with equal names. */
function VisitorLink(visitor: Visitor) {
  const { id, kind, subject } = visitor
  const name = nameOfVisitor(visitor)
  const second = kind === 'anonymous' ? shortId(id) : subject
  return (
    <Stack gap={0} className="visitor-name">
      <TextLink to="/visitors/$visitorId" params={{ visitorId: id }} size="sm" fw={500}>
        <bdi>{name}</bdi>
      </TextLink>
      {second === name ? null : (
        <Text span size="xs" c="dimmed">
          <bdi>{second}</bdi>
        </Text>
      )}
    </Stack>
  )
}

function NoVisitors({ title }: { readonly title: string }) {
  const { is_allowed: isAllowed } = useMe().conversations
  if (!isAllowed)
    return (
      <Empty icon="visitors" title={t('conversations.forbiddenTitle')}>
        {rich('conversations.forbidden', { setting: <Code>PARLEY_CONVERSATIONS=forbidden</Code> })}
      </Empty>
    )
  return (
    <Empty
      icon="visitors"
      title={title}
      action={
        <Group gap="xs">
          <Button component={Link} to="/agents" variant="default">
            {t('conversations.chooseAgent')}
          </Button>
        </Group>
      }
    >
      {rich('visitors.noneHelp', {
        field: (
          <Text span fw={500} c="var(--text)">
            {t('conversations.storeConversations')}
          </Text>
        ),
      })}
    </Empty>
  )
}
