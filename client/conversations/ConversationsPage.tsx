/** Lists the stored conversations of the active key's agents. */
import './conversations.css'
import { Anchor, Button, Code, Group, NativeSelect, Text } from '@mantine/core'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { agentsQuery } from '../agents/queries.ts'
import { type Column, DataTable } from '../components/DataTable.tsx'
import { PageHeader } from '../components/PageHeader.tsx'
import { Empty, Failed, Loading } from '../components/QueryStates.tsx'
import { Ago, TextLink } from '../components/text.tsx'
import { renderNumber } from '../format.ts'
import { useMe } from '../shell/use-me.ts'
import { AgentName } from './AgentName.tsx'
import { type Conversation, conversationsQuery, titleOf } from './queries.ts'
import { StatusLabel } from './status.tsx'

export function ConversationsPage() {
  const { agent } = useSearch({ from: '/shell/conversations' })
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage, isFetchNextPageError } =
    useInfiniteQuery(conversationsQuery(agent))
  const conversations = data?.pages.flatMap((page) => page.data)
  const hasFailed = error !== null && (data === undefined || isFetchNextPageError)
  return (
    <>
      <PageHeader
        title="Conversations"
        about="What visitors and clients said to your agents, and what the agents answered. Newest first."
      />
      <AgentFilter agent={agent} />
      {conversations === undefined && error === null ? <Loading what="the conversations" rows={6} /> : null}
      {conversations?.length === 0 ? <NoConversations agent={agent} /> : null}
      {conversations === undefined || conversations.length === 0 ? null : (
        <DataTable label="Conversations" columns={columns} rows={conversations} keyOf={({ id }) => id} />
      )}
      {hasFailed ? (
        <Failed
          error={error}
          what={data === undefined ? 'The conversations' : 'More conversations'}
          retry={() => void (data === undefined ? refetch() : fetchNextPage())}
        />
      ) : null}
      {hasNextPage && !hasFailed ? (
        <Group justify="center" mt="md">
          <Button variant="default" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            Load more
          </Button>
        </Group>
      ) : null}
    </>
  )
}

const columns: readonly Column<Conversation>[] = [
  {
    name: 'Title',
    render: (conversation) => (
      <TextLink
        to="/conversations/$conversationId"
        params={{ conversationId: conversation.id }}
        size="sm"
        fw={500}
        c={conversation.parley?.title == null ? 'dimmed' : undefined}
      >
        <bdi className="conversation-title">{titleOf(conversation)}</bdi>
      </TextLink>
    ),
  },
  { name: 'Agent', render: ({ parley }) => <AgentName id={parley?.agent_id} /> },
  { name: 'Turns', isNumber: true, render: ({ parley }) => renderNumber(parley?.turns ?? 0) },
  { name: 'Last turn', render: ({ parley }) => <StatusLabel status={parley?.last_status} /> },
  { name: 'Last activity', render: ({ parley }) => <Ago seconds={parley?.last_at ?? 0} /> },
  { name: 'Expires', render: ({ parley }) => <Ago seconds={parley?.expires_at ?? 0} /> },
]

function AgentFilter({ agent }: { readonly agent: string | undefined }) {
  const navigate = useNavigate()
  const { data: agents = [] } = useQuery(agentsQuery)
  if (agents.length === 0 && agent === undefined) return null
  const isListed = agent === undefined || agents.some(({ id }) => id === agent)
  return (
    <NativeSelect
      aria-label="Agent"
      maw={320}
      mb="md"
      value={agent ?? ''}
      data={[
        { value: '', label: 'All agents' },
        ...agents.map(({ id, name }) => ({ value: id, label: name })),
        ...(isListed ? [] : [{ value: agent, label: agent }]),
      ]}
      onChange={({ currentTarget: { value } }) =>
        void navigate({ to: '/conversations', search: value === '' ? {} : { agent: value } })
      }
    />
  )
}

function NoConversations({ agent }: { readonly agent: string | undefined }) {
  const { is_allowed: isAllowed } = useMe().conversations
  if (!isAllowed)
    return (
      <Empty icon="conversations" title="This server does not store conversations">
        Its operator has forbidden it with <Code>PARLEY_CONVERSATIONS=forbidden</Code>.
      </Empty>
    )
  const link =
    agent === undefined ? (
      <Button component={Link} to="/agents" variant="default">
        Choose an agent
      </Button>
    ) : (
      <Anchor component={Link} to="/agents/$agentId" params={{ agentId: agent } as never} size="sm">
        Edit the agent
      </Anchor>
    )
  return (
    <Empty
      icon="conversations"
      title={agent === undefined ? 'No conversations yet' : 'No conversations of this agent'}
      action={link}
    >
      Agents store nothing by default. To store the conversations of an agent, edit it and turn on{' '}
      <Text span fw={500} c="var(--text)">
        Store conversations
      </Text>
      , or add{' '}
      <Code>
        conversations: {'{'} keep: 30d {'}'}
      </Code>{' '}
      to its definition.
    </Empty>
  )
}
