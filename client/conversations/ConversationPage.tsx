/** Shows one conversation with its transcript, and deletes it. */
import './conversations.css'
import { Anchor, Breadcrumbs, Button, Code, Stack } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { api } from '../api.ts'
import { ConfirmDialog } from '../components/Dialog.tsx'
import { PageHeader } from '../components/PageHeader.tsx'
import { Failed, Loading } from '../components/QueryStates.tsx'
import { Ago } from '../components/text.tsx'
import { toFailure } from '../failure.ts'
import { renderNumber } from '../format.ts'
import { UnknownPage } from '../shell/ErrorPage.tsx'
import { showDone } from '../shell/toast.tsx'
import { t } from '../strings/language.ts'
import { AgentName } from './AgentName.tsx'
import { type Conversation, conversationQuery, itemsQuery, titleOf, turnsQuery } from './queries.ts'
import { Transcript } from './Transcript.tsx'

export function ConversationPage() {
  const { conversationId } = useParams({ from: '/shell/conversations/$conversationId' })
  const { data: conversation, error, refetch } = useQuery(conversationQuery(conversationId))
  if (conversation !== undefined) return <KnownConversation conversation={conversation} />
  if (error === null) return <Loading what="conversation" rows={3} height={96} />
  if (toFailure(error).status === 404) return <UnknownPage />
  return <Failed error={error} what="conversation" retry={() => void refetch()} />
}

function KnownConversation({ conversation }: { readonly conversation: Conversation }) {
  const [isDeleting, deleting] = useDisclosure(false)
  return (
    <>
      <Breadcrumbs mb={4}>
        <Anchor component={Link} to="/conversations" size="sm">
          {t('conversations.title')}
        </Anchor>
      </Breadcrumbs>
      <div className="conversation-head">
        <PageHeader title={titleOf(conversation)}>
          <Button variant="default" c="var(--bad)" onClick={deleting.open}>
            {t('conversations.deleteMenu')}
          </Button>
        </PageHeader>
      </div>
      <div className="conversation-columns">
        <Messages conversation={conversation} />
        <Facts conversation={conversation} />
      </div>
      <DeleteDialog id={conversation.id} isOpen={isDeleting} onClose={deleting.close} />
    </>
  )
}

function Messages({ conversation: { id, parley } }: { readonly conversation: Conversation }) {
  const revision = `${parley?.turns}-${parley?.last_status}`
  const items = useInfiniteQuery(itemsQuery(id, revision))
  const turns = useQuery(turnsQuery(id, revision))
  const error = items.error ?? turns.error
  if (items.data === undefined || turns.data === undefined) {
    if (error === null) return <Loading what="messages" rows={4} height={72} />
    const retry = () => void Promise.all([items.refetch(), turns.refetch()])
    return <Failed error={error} what="messages" retry={retry} />
  }
  return (
    <Stack gap="md">
      <Transcript
        items={items.data.pages.flatMap((page) => page.data)}
        turns={turns.data}
        isWhole={!items.hasNextPage}
      />
      {items.isFetchNextPageError ? (
        <Failed
          error={error}
          title={t('common.moreMessagesFailed')}
          retry={() => void items.fetchNextPage()}
        />
      ) : null}
      {items.hasNextPage && !items.isFetchNextPageError ? (
        <Button
          variant="default"
          mx="auto"
          loading={items.isFetchingNextPage}
          onClick={() => void items.fetchNextPage()}
        >
          {t('common.loadMore')}
        </Button>
      ) : null}
    </Stack>
  )
}

const channelNames = {
  widget: t('conversations.widget'),
  api: t('conversations.api'),
  console: t('conversations.console'),
} as const

function Facts({ conversation }: { readonly conversation: Conversation }) {
  const { id, created_at: createdAt, metadata, parley } = conversation
  if (parley === undefined) return null
  const pairs = Object.entries(metadata)
  const tokens = t('conversations.tokensInOut', {
    input: parley.prompt_tokens,
    output: parley.completion_tokens,
  })
  return (
    <section className="panel conversation-facts" aria-label={t('conversations.details')}>
      <dl>
        <Fact name={t('common.agent')}>
          {parley.agent_id === null ? (
            <AgentName id={null} />
          ) : (
            <Anchor
              component={Link}
              to="/agents/$agentId"
              params={{ agentId: parley.agent_id } as never}
              size="sm"
            >
              <AgentName id={parley.agent_id} />
            </Anchor>
          )}
        </Fact>
        <Fact name={t('conversations.channel')}>{channelNames[parley.channel]}</Fact>
        <Fact name={t('conversations.turns')}>{renderNumber(parley.turns)}</Fact>
        {parley.failures === 0 ? null : (
          <Fact name={t('conversations.failedTurns')}>{renderNumber(parley.failures)}</Fact>
        )}
        <Fact name={t('conversations.tokens')}>{tokens}</Fact>
        <Fact name={t('conversations.started')}>
          <Ago seconds={createdAt} />
        </Fact>
        <Fact name={t('conversations.lastActivity')}>
          <Ago seconds={parley.last_at} />
        </Fact>
        <Fact name={t('conversations.expires')}>
          <Ago seconds={parley.expires_at} />
        </Fact>
        <Fact name={t('conversations.id')}>
          <Code>{id}</Code>
        </Fact>
      </dl>
      {pairs.length === 0 ? null : (
        <>
          <h2>{t('conversations.metadata')}</h2>
          <dl>
            {pairs.map(([name, value]) => (
              <Fact key={name} name={name}>
                {value}
              </Fact>
            ))}
          </dl>
        </>
      )}
    </section>
  )
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

interface DeleteDialogProps {
  readonly id: string
  readonly isOpen: boolean
  readonly onClose: () => void
}

function DeleteDialog({ id, isOpen, onClose }: DeleteDialogProps) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  async function remove(): Promise<void> {
    await api.conversations.delete.mutate({ conversation_id: id })
    await navigate({ to: '/conversations' })
    queries.removeQueries({ queryKey: ['conversations', id] })
    await queries.invalidateQueries({ queryKey: ['conversations', 'list'] })
    showDone(t('conversations.deletedOne'))
  }
  return (
    <ConfirmDialog
      title={t('conversations.deleteOne')}
      isOpen={isOpen}
      onClose={onClose}
      onConfirm={remove}
      action={t('common.delete')}
      isDangerous
    >
      {t('conversations.deleteOneLoss')}
    </ConfirmDialog>
  )
}
