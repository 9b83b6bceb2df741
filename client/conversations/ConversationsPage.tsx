/** Lists the stored conversations of the active key's agents. */
import './conversations.css'
import { Anchor, Button, Code, Text } from '@mantine/core'
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { AgentSelect } from '../agents/AgentSelect.tsx'
import { api } from '../api.ts'
import type { Column } from '../components/DataTable.tsx'
import { ConfirmDialog } from '../components/Dialog.tsx'
import { ListView } from '../components/list/ListView.tsx'
import { PageHeader } from '../components/PageHeader.tsx'
import { Empty } from '../components/QueryStates.tsx'
import { Ago, TextLink } from '../components/text.tsx'
import { renderNumber } from '../format.ts'
import { changeSearch } from '../search.ts'
import { showDone } from '../shell/toast.tsx'
import { useMe } from '../shell/use-me.ts'
import { AgentName } from './AgentName.tsx'
import { type Conversation, conversationPageQuery, titleOf } from './queries.ts'
import { StatusLabel } from './status.tsx'

export function ConversationsPage() {
  const search = useSearch({ from: '/shell/conversations' })
  const navigate = useNavigate({ from: '/conversations' })
  const queries = useQueryClient()
  const [deleted, setDeleted] = useState<readonly Conversation[]>([])
  const change = (changes: Readonly<Record<string, string | undefined>>) =>
    void navigate({ search: (now) => changeSearch(now, changes), replace: 'q' in changes })
  const query = useQuery({ ...conversationPageQuery(search), placeholderData: keepPreviousData })
  const agentIds = query.data?.data.flatMap(({ parley }) => parley?.agent_id ?? []) ?? []
  const remove = async () => {
    await Promise.all(
      deleted.map(({ id }) => api.conversations.delete.mutate({ conversation_id: id })),
    ).finally(() => queries.invalidateQueries({ queryKey: ['conversations'] }))
    showDone(deleted.length === 1 ? 'Conversation deleted' : 'Conversations deleted')
  }
  return (
    <>
      <PageHeader
        title="Conversations"
        about="What visitors and clients said to your agents, and what the agents answered."
      />
      <ListView
        label="Conversations"
        items="conversations"
        columns={columnsOf(agentIds)}
        query={query}
        idOf={({ id }) => id}
        nameOf={titleOf}
        search={search}
        onSearch={change}
        sorting={{ sort: 'created', order: 'desc' }}
        placeholder="Search by title or ID"
        toolbar={
          <AgentSelect value={search.agent} onChange={(agent) => change({ agent, after: undefined })} />
        }
        bulk={[
          {
            label: 'Delete…',
            isDangerous: true,
            run: (conversations) => {
              setDeleted(conversations)
              return undefined
            },
          },
        ]}
        empty={<NoConversations agent={undefined} />}
        noMatches={search.q === undefined ? <NoConversations agent={search.agent} /> : undefined}
      />
      <ConfirmDialog
        title="Delete conversations"
        isOpen={deleted.length > 0}
        onClose={() => setDeleted([])}
        onConfirm={remove}
        action="Delete"
        isDangerous
      >
        {`The selected conversations (${deleted.length}) will be deleted permanently.`}
      </ConfirmDialog>
    </>
  )
}

const columnsOf = (agentIds: readonly string[]): readonly Column<Conversation>[] => [
  {
    name: 'Title',
    isMain: true,
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
  { name: 'Agent', render: ({ parley }) => <AgentName id={parley?.agent_id} among={agentIds} /> },
  { name: 'Turns', isNumber: true, render: ({ parley }) => renderNumber(parley?.turns ?? 0) },
  { name: 'Last turn', render: ({ parley }) => <StatusLabel status={parley?.last_status} /> },
  {
    name: 'Created',
    sort: 'created',
    firstOrder: 'desc',
    isHidden: true,
    render: ({ created_at: at }) => <Ago seconds={at} />,
  },
  { name: 'Last activity', render: ({ parley }) => <Ago seconds={parley?.last_at ?? 0} /> },
  { name: 'Expires', render: ({ parley }) => <Ago seconds={parley?.expires_at ?? 0} /> },
  { name: 'ID', isHidden: true, render: ({ id }) => <Code>{id}</Code> },
]

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
