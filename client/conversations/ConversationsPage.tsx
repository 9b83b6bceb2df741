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
import { t } from '../strings/language.ts'
import { rich } from '../strings/rich.tsx'
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
    showDone(deleted.length === 1 ? t('conversations.deletedOne') : t('conversations.deletedMany'))
  }
  return (
    <>
      <PageHeader title={t('conversations.title')} about={t('conversations.about')} />
      <ListView
        label={t('conversations.title')}
        items="conversations"
        columns={columnsOf(agentIds)}
        query={query}
        idOf={({ id }) => id}
        nameOf={titleOf}
        search={search}
        onSearch={change}
        sorting={{ sort: 'created', order: 'desc' }}
        placeholder={t('conversations.searchBy')}
        toolbar={
          <AgentSelect value={search.agent} onChange={(agent) => change({ agent, after: undefined })} />
        }
        bulk={[
          {
            label: t('conversations.deleteMenu'),
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
        title={t('conversations.deleteMany')}
        isOpen={deleted.length > 0}
        onClose={() => setDeleted([])}
        onConfirm={remove}
        action={t('common.delete')}
        isDangerous
      >
        {t('conversations.deleteManyLoss', { number: deleted.length })}
      </ConfirmDialog>
    </>
  )
}

const columnsOf = (agentIds: readonly string[]): readonly Column<Conversation>[] => [
  {
    name: 'conversations.columnTitle',
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
  { name: 'common.agent', render: ({ parley }) => <AgentName id={parley?.agent_id} among={agentIds} /> },
  {
    name: 'conversations.turns',
    isNumber: true,
    render: ({ parley }) => renderNumber(parley?.turns ?? 0),
  },
  { name: 'conversations.lastTurn', render: ({ parley }) => <StatusLabel status={parley?.last_status} /> },
  {
    name: 'conversations.created',
    sort: 'created',
    firstOrder: 'desc',
    isHidden: true,
    render: ({ created_at: at }) => <Ago seconds={at} />,
  },
  { name: 'conversations.lastActivity', render: ({ parley }) => <Ago seconds={parley?.last_at ?? 0} /> },
  { name: 'conversations.expires', render: ({ parley }) => <Ago seconds={parley?.expires_at ?? 0} /> },
  { name: 'conversations.id', isHidden: true, render: ({ id }) => <Code>{id}</Code> },
]

function NoConversations({ agent }: { readonly agent: string | undefined }) {
  const { is_allowed: isAllowed } = useMe().conversations
  if (!isAllowed)
    return (
      <Empty icon="conversations" title={t('conversations.forbiddenTitle')}>
        {rich('conversations.forbidden', { setting: <Code>PARLEY_CONVERSATIONS=forbidden</Code> })}
      </Empty>
    )
  const link =
    agent === undefined ? (
      <Button component={Link} to="/agents" variant="default">
        {t('conversations.chooseAgent')}
      </Button>
    ) : (
      <Anchor component={Link} to="/agents/$agentId" params={{ agentId: agent } as never} size="sm">
        {t('conversations.editAgent')}
      </Anchor>
    )
  return (
    <Empty
      icon="conversations"
      title={agent === undefined ? t('conversations.none') : t('conversations.noneOfAgent')}
      action={link}
    >
      {rich('conversations.noneHelp', {
        field: (
          <Text span fw={500} c="var(--text)">
            {t('conversations.storeConversations')}
          </Text>
        ),
        code: (
          <Code>
            conversations: {'{'} keep: 30d {'}'}
          </Code>
        ),
      })}
    </Empty>
  )
}
