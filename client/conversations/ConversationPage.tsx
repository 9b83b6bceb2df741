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
import { AgentName } from './AgentName.tsx'
import { type Conversation, conversationQuery, itemsQuery, titleOf, turnsQuery } from './queries.ts'
import { Transcript } from './Transcript.tsx'

export function ConversationPage() {
  const { conversationId } = useParams({ from: '/shell/conversations/$conversationId' })
  const { data: conversation, error, refetch } = useQuery(conversationQuery(conversationId))
  if (conversation !== undefined) return <KnownConversation conversation={conversation} />
  if (error === null) return <Loading what="the conversation" rows={3} height={96} />
  if (toFailure(error).status === 404) return <UnknownPage />
  return <Failed error={error} what="The conversation" retry={() => void refetch()} />
}

function KnownConversation({ conversation }: { readonly conversation: Conversation }) {
  const [isDeleting, deleting] = useDisclosure(false)
  return (
    <>
      <Breadcrumbs mb={4}>
        <Anchor component={Link} to="/conversations" size="sm">
          Conversations
        </Anchor>
      </Breadcrumbs>
      <div className="conversation-head">
        <PageHeader title={titleOf(conversation)}>
          <Button variant="default" c="var(--bad)" onClick={deleting.open}>
            Delete…
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
    if (error === null) return <Loading what="the messages" rows={4} height={72} />
    const retry = () => void Promise.all([items.refetch(), turns.refetch()])
    return <Failed error={error} what="The messages" retry={retry} />
  }
  return (
    <Stack gap="md">
      <Transcript
        items={items.data.pages.flatMap((page) => page.data)}
        turns={turns.data}
        isWhole={!items.hasNextPage}
      />
      {items.isFetchNextPageError ? (
        <Failed error={error} what="More messages" retry={() => void items.fetchNextPage()} />
      ) : null}
      {items.hasNextPage && !items.isFetchNextPageError ? (
        <Button
          variant="default"
          mx="auto"
          loading={items.isFetchingNextPage}
          onClick={() => void items.fetchNextPage()}
        >
          Load more
        </Button>
      ) : null}
    </Stack>
  )
}

const channelNames = { widget: 'Chat widget', api: 'API', console: 'Console' } as const

function Facts({ conversation }: { readonly conversation: Conversation }) {
  const { id, created_at: createdAt, metadata, parley } = conversation
  if (parley === undefined) return null
  const pairs = Object.entries(metadata)
  const tokens = `${renderNumber(parley.prompt_tokens)} in, ${renderNumber(parley.completion_tokens)} out`
  return (
    <section className="panel conversation-facts" aria-label="Details">
      <dl>
        <Fact name="Agent">
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
        <Fact name="Channel">{channelNames[parley.channel]}</Fact>
        <Fact name="Turns">{renderNumber(parley.turns)}</Fact>
        {parley.failures === 0 ? null : <Fact name="Failed turns">{renderNumber(parley.failures)}</Fact>}
        <Fact name="Tokens">{tokens}</Fact>
        <Fact name="Started">
          <Ago seconds={createdAt} />
        </Fact>
        <Fact name="Last activity">
          <Ago seconds={parley.last_at} />
        </Fact>
        <Fact name="Expires">
          <Ago seconds={parley.expires_at} />
        </Fact>
        <Fact name="ID">
          <Code>{id}</Code>
        </Fact>
      </dl>
      {pairs.length === 0 ? null : (
        <>
          <h2>Metadata</h2>
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
    showDone('Conversation deleted')
  }
  return (
    <ConfirmDialog
      title="Delete conversation"
      isOpen={isOpen}
      onClose={onClose}
      onConfirm={remove}
      action="Delete"
      isDangerous
    >
      All its messages and tool calls will be deleted. A running answer stops. This cannot be undone.
    </ConfirmDialog>
  )
}
