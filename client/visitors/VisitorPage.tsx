/**
 * Shows one visitor with their conversations, exports and erases the visitor, and shows the progress of an
 * erasure.
 */
import './visitors.css'
import { Anchor, Breadcrumbs, Button, Code, Group, Stack, Title } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { Link, useParams, useSearch } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { type Column, DataTable } from '../components/DataTable.tsx'
import { Facts } from '../components/Facts.tsx'
import { PageHeader } from '../components/PageHeader.tsx'
import { Empty, Failed, Loading } from '../components/QueryStates.tsx'
import { Ago, TextLink } from '../components/text.tsx'
import { AgentName } from '../conversations/AgentName.tsx'
import { titleOf } from '../conversations/queries.ts'
import { StatusLabel } from '../conversations/status.tsx'
import { toFailure } from '../failure.ts'
import { renderNumber } from '../format.ts'
import { UnknownPage } from '../shell/ErrorPage.tsx'
import { Icon } from '../shell/icons.tsx'
import { t } from '../strings/language.ts'
import { EraseDialog } from './EraseDialog.tsx'
import { ErasureView } from './ErasureView.tsx'
import { IdentityBadge } from './IdentityBadge.tsx'
import {
  conversationsOfVisitorQuery,
  nameOfVisitor,
  type Visitor,
  type VisitorConversation,
  visitorQuery,
} from './queries.ts'

export function VisitorPage() {
  const { visitorId } = useParams({ from: '/shell/visitors/$visitorId' })
  const { erasure } = useSearch({ from: '/shell/visitors/$visitorId' })
  if (erasure !== undefined) return <ErasureView id={erasure} />
  return <StoredVisitor id={visitorId} />
}

function StoredVisitor({ id }: { readonly id: string }) {
  const { data: visitor, error, refetch } = useQuery(visitorQuery(id))
  if (visitor !== undefined) return <KnownVisitor visitor={visitor} />
  if (error === null) return <Loading what="visitor" rows={3} height={96} />
  if (toFailure(error).status === 404) return <UnknownPage />
  return <Failed error={error} what="visitor" retry={() => void refetch()} />
}

function KnownVisitor({ visitor }: { readonly visitor: Visitor }) {
  const { id } = visitor
  const [isErasing, erasing] = useDisclosure(false)
  return (
    <>
      <Breadcrumbs mb={4}>
        <Anchor component={Link} to="/visitors" size="sm">
          {t('visitors.title')}
        </Anchor>
      </Breadcrumbs>
      <div className="visitor-title">
        <PageHeader title={nameOfVisitor(visitor)}>
          <Button
            component="a"
            variant="default"
            leftSection={<Icon name="down" size={16} />}
            href={`/v1/manager/visitors/${encodeURIComponent(id)}/export`}
            download={`${id}.jsonl`}
          >
            {t('visitors.export')}
          </Button>
          <Button variant="default" c="var(--bad)" onClick={erasing.open}>
            {t('visitors.eraseMenu')}
          </Button>
        </PageHeader>
      </div>
      <Stack gap="lg">
        <VisitorFacts visitor={visitor} />
        <div>
          <Group justify="space-between" mb="sm">
            <Title order={2}>{t('visitors.conversations')}</Title>
            {visitor.conversations === 0 ? null : (
              <TextLink to="/conversations" search={{ visitor: id }} size="sm">
                {t('visitors.allConversations')}
              </TextLink>
            )}
          </Group>
          <Conversations id={id} />
        </div>
      </Stack>
      <EraseDialog visitor={visitor} isOpen={isErasing} onClose={erasing.close} />
    </>
  )
}

function VisitorFacts({ visitor }: { readonly visitor: Visitor }) {
  const { id, kind, subject, issuer, email, name, claims, created_at: createdAt, seen_at: seenAt } = visitor
  const isAnonymous = kind === 'anonymous'
  const given: readonly (readonly [string, ReactNode])[] = [
    [t('visitors.name'), name],
    [t('visitors.email'), email],
    [t('visitors.subject'), isAnonymous ? null : <bdi key="subject">{subject}</bdi>],
    [t('common.agent'), isAnonymous ? <AgentName key="agent" id={issuer} /> : null],
    [t('visitors.issuer'), isAnonymous || issuer === '' ? null : <bdi key="issuer">{issuer}</bdi>],
    ...Object.entries(claims).map(([claim, value]): [string, ReactNode] => [
      claim,
      <bdi key={claim}>{typeof value === 'string' ? value : JSON.stringify(value)}</bdi>,
    ]),
  ]
  return (
    <Facts
      label={t('visitors.details')}
      facts={[
        [t('visitors.identity'), <IdentityBadge key="kind" kind={kind} />],
        ...given.filter(([, value]) => value !== null),
        [t('visitors.lastSeen'), <Ago key="seen" seconds={seenAt} />],
        [t('visitors.firstSeen'), <Ago key="created" seconds={createdAt} />],
        [t('visitors.id'), <Code key="id">{id}</Code>],
      ]}
    />
  )
}

function Conversations({ id }: { readonly id: string }) {
  const { data, error, refetch } = useQuery(conversationsOfVisitorQuery(id))
  if (data === undefined && error !== null)
    return <Failed error={error} what="conversations" retry={() => void refetch()} />
  if (data === undefined) return <Loading what="conversations" rows={3} />
  if (data.data.length === 0)
    return (
      <Empty icon="conversations" title={t('visitors.noConversations')}>
        {t('visitors.noConversationsHelp')}
      </Empty>
    )
  const agentIds = data.data.flatMap(({ parley }) => parley?.agent_id ?? [])
  return (
    <DataTable
      label={t('visitors.conversations')}
      columns={columnsOf(agentIds)}
      rows={data.data}
      keyOf={({ id: conversationId }) => conversationId}
    />
  )
}

const columnsOf = (agentIds: readonly string[]): readonly Column<VisitorConversation>[] => [
  {
    name: 'conversations.columnTitle',
    render: (conversation) => (
      <TextLink
        to="/conversations/$conversationId"
        params={{ conversationId: conversation.id }}
        size="sm"
        fw={500}
      >
        <bdi>{titleOf(conversation)}</bdi>
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
  { name: 'conversations.lastActivity', render: ({ parley }) => <Ago seconds={parley?.last_at ?? 0} /> },
]
