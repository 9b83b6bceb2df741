/** Shows one conversation with its transcript, who answers it, and the panel that explains its turns. */
import './transcript/transcript.css'
import { ActionIcon, Anchor, CloseButton, Drawer, Group, Text, Title } from '@mantine/core'
import { useDisclosure, useHotkeys, useMediaQuery } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { useTitle } from '../components/PageHeader.tsx'
import { Failed, Loading } from '../components/QueryStates.tsx'
import { toFailure } from '../failure.ts'
import { isAnsweredByMock } from '../first-run/first-run.ts'
import { MockNote } from '../first-run/MockNotice.tsx'
import type { ConversationsSearch } from '../search.ts'
import { UnknownPage } from '../shell/ErrorPage.tsx'
import { Icon } from '../shell/icons.tsx'
import { t } from '../strings/language.ts'
import { AgentName } from './AgentName.tsx'
import { Composer } from './answer/Composer.tsx'
import { ModeBanner } from './answer/ModeBanner.tsx'
import { useOutbox } from './answer/outbox.ts'
import { type Handover, useHandover } from './answer/use-handover.ts'
import { filtersOf } from './list/filters.ts'
import { type Conversation, conversationQuery, titleOf, visitorOf } from './queries.ts'
import { SidePanel, type SideTab } from './SidePanel.tsx'
import { TranscriptView } from './transcript/TranscriptView.tsx'
import { useTranscript } from './transcript/use-transcript.ts'

/** The width from which the panel fits next to the transcript. */
const WIDE = '(min-width: 78em)'

export function ConversationPage() {
  const { conversationId } = useParams({ from: '/shell/conversations/$conversationId' })
  const { data: conversation, error, refetch } = useQuery(conversationQuery(conversationId))
  const isMissing = error !== null && toFailure(error).status === 404
  if (conversation !== undefined && isMissing) return <DeletedConversation />
  if (conversation !== undefined)
    return <OpenConversation key={conversation.id} conversation={conversation} />
  return (
    <div className="desk-main">
      {error === null ? <Loading what="conversation" rows={3} height={96} /> : null}
      {isMissing ? <UnknownPage /> : null}
      {error !== null && !isMissing ? (
        <Failed error={error} what="conversation" retry={() => void refetch()} />
      ) : null}
    </div>
  )
}

/** Shown when the conversation is deleted while it is open, so that the user writes no reply in vain. */
function DeletedConversation() {
  const search = useSearch({ from: '/shell/conversations' })
  useTitle(t('conversations.wasDeleted'))
  return (
    <div className="desk-main desk-nothing" role="status">
      <Icon name="trash" size={32} />
      <Title order={1} size="h2">
        {t('conversations.wasDeleted')}
      </Title>
      <Text size="sm" maw={420}>
        {t('conversations.wasDeletedHelp')}
      </Text>
      <Anchor component={Link} to="/conversations" search={filtersOf(search) as never} size="sm">
        {t('conversations.backToList')}
      </Anchor>
    </div>
  )
}

function OpenConversation({ conversation }: { readonly conversation: Conversation }) {
  const search = useSearch({ from: '/shell/conversations' })
  const navigate = useNavigate()
  const transcript = useTranscript(conversation.id)
  const outgoing = useOutbox(conversation.id)
  const handover = useHandover(conversation)
  const isWide = useMediaQuery(WIDE, true, { getInitialValueInEffect: false })
  const [isPanelOpen, panel] = useDisclosure(false)
  const [tab, setTab] = useState<SideTab>('why')
  useTitle(titleOf(conversation))
  useConversationKeys(handover, search)
  const { turns, loaded } = transcript
  const turnId = search.turn ?? loaded.find(({ id }) => id === search.item)?.parley?.turn_id
  const selected = turns?.find(({ id }) => id === turnId) ?? turns?.at(-1)
  const select = (id: string) => {
    void navigate({
      to: '/conversations/$conversationId',
      params: { conversationId: conversation.id },
      search: { ...search, turn: id },
      replace: true,
    })
    setTab('why')
    panel.open()
  }
  const side = <SidePanel conversation={conversation} turn={selected} tab={tab} onTab={setTab} />
  return (
    <>
      <div className="desk-main">
        <ConversationHead conversation={conversation} onPanel={isWide ? undefined : panel.open} />
        <ModeBanner conversation={conversation} handover={handover} isConnected={transcript.isConnected} />
        {isAnsweredByMock(turns ?? []) ? (
          <div className="desk-note">
            <MockNote />
          </div>
        ) : null}
        <TranscriptView
          transcript={transcript}
          match={search.item === undefined ? undefined : { itemId: search.item, query: search.q ?? '' }}
          outgoing={outgoing}
          selectedId={selected?.id}
          onSelect={select}
        />
        <Composer conversation={conversation} handover={handover} />
      </div>
      {isWide ? (
        <aside className="desk-side" aria-label={t('conversations.details')}>
          {side}
        </aside>
      ) : (
        <SideDrawer isOpen={isPanelOpen} onClose={panel.close}>
          {side}
        </SideDrawer>
      )}
    </>
  )
}

interface SideDrawerProps {
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly children: ReactNode
}

/** Renders its own header, because the library's header adds a landmark. */
function SideDrawer({ isOpen, onClose, children }: SideDrawerProps) {
  return (
    <Drawer.Root opened={isOpen} onClose={onClose} position="right" size="min(380px, 100vw)">
      <Drawer.Overlay />
      <Drawer.Content>
        <Drawer.Body p={0}>
          <Group justify="space-between" px="md" py="xs">
            <Drawer.Title fw={600}>{t('conversations.details')}</Drawer.Title>
            <CloseButton aria-label={t('common.close')} onClick={onClose} />
          </Group>
          {children}
        </Drawer.Body>
      </Drawer.Content>
    </Drawer.Root>
  )
}

interface ConversationHeadProps {
  readonly conversation: Conversation
  /** Opens the panel; undefined if it is always visible. */
  readonly onPanel: (() => void) | undefined
}

function ConversationHead({ conversation, onPanel }: ConversationHeadProps) {
  const { parley } = conversation
  const search = useSearch({ from: '/shell/conversations' })
  const visitor = visitorOf(conversation)
  return (
    <Group className="desk-head" wrap="nowrap" gap="xs">
      <ActionIcon
        component={Link}
        to="/conversations"
        search={filtersOf(search) as never}
        variant="subtle"
        color="gray"
        size="lg"
        hiddenFrom="sm"
        aria-label={t('conversations.backToList')}
      >
        <Icon name="back" />
      </ActionIcon>
      <div className="desk-head-text">
        <Title order={1} size="h2" title={titleOf(conversation)}>
          <bdi>{titleOf(conversation)}</bdi>
        </Title>
        <Text size="xs" c="dimmed" truncate>
          <AgentName id={parley?.agent_id} />
          {visitor === undefined ? null : (
            <>
              {' · '}
              <bdi>{visitor}</bdi>
            </>
          )}
        </Text>
      </div>
      {onPanel === undefined ? null : (
        <ActionIcon
          variant="default"
          size="lg"
          aria-label={t('conversations.showDetails')}
          title={t('conversations.showDetails')}
          onClick={onPanel}
        >
          <Icon name="side" />
        </ActionIcon>
      )}
    </Group>
  )
}

/**
 * Adds keyboard shortcuts: R focuses the reply field. E hands the conversation back if the user answers it,
 * and otherwise closes it.
 */
function useConversationKeys({ isMine, handBack }: Handover, search: ConversationsSearch): void {
  const navigate = useNavigate()
  useHotkeys([
    ['r', () => document.querySelector<HTMLElement>('.desk-composer textarea')?.focus()],
    [
      'e',
      () => {
        if (isMine) handBack.mutate()
        else void navigate({ to: '/conversations', search: filtersOf(search) })
      },
    ],
  ])
}
