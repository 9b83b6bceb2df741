/** Shows the list of conversations next to the open conversation. */
import './desk.css'
import { ActionIcon, Group, Kbd, Text, Title } from '@mantine/core'
import { useDisclosure, useHotkeys, useMediaQuery } from '@mantine/hooks'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Outlet, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { lazy, Suspense, useCallback } from 'react'
import { useTitle } from '../components/PageHeader.tsx'
import type { ConversationsSearch } from '../search.ts'
import { Icon } from '../shell/icons.tsx'
import { palette } from '../shell/palette.ts'
import { t } from '../strings/language.ts'
import { rich } from '../strings/rich.tsx'
import { ConversationList } from './list/ConversationList.tsx'
import { FilterBar } from './list/FilterBar.tsx'
import { exportAddress, filtersOf } from './list/filters.ts'
import { useLiveList } from './list/use-live-list.ts'
import { NotifyButton } from './NotifyButton.tsx'
import { conversationListQuery } from './queries.ts'

const RatingsDialog = lazy(async () => ({ default: (await import('./RatingsDialog.tsx')).RatingsDialog }))

export function ConversationsPage() {
  const search = useSearch({ from: '/shell/conversations' })
  const { conversationId: openId } = useParams({ strict: false })
  const navigate = useNavigate()
  const change = (changes: ConversationsSearch) =>
    void navigate({
      ...(openId === undefined
        ? { to: '/conversations' as const }
        : { to: '/conversations/$conversationId' as const, params: { conversationId: openId } }),
      // Clears the highlighted message, because it is a result of the previous search.
      search: { ...search, item: undefined, ...changes },
      replace: 'q' in changes,
    })
  const clear = () =>
    change(Object.fromEntries(Object.keys(filtersOf(search)).map((name) => [name, undefined])))
  useListKeys(openId)
  useLiveList(filtersOf(search))
  return (
    <div className="desk" data-open={openId !== undefined || undefined}>
      <section className="desk-list" aria-label={t('conversations.listLabel')}>
        <ListHead search={search} isOpen={openId !== undefined} />
        <FilterBar search={search} onChange={change} />
        <ConversationList search={search} openId={openId} onClear={clear} />
      </section>
      {openId === undefined ? <NothingOpen search={search} /> : <Outlet />}
    </div>
  )
}

interface ListHeadProps {
  readonly search: ConversationsSearch
  readonly isOpen: boolean
}

/** The open conversation has the page's main heading, because a phone shows only the conversation. */
function ListHead({ search, isOpen }: ListHeadProps) {
  const [isRatingsOpen, ratings] = useDisclosure(false)
  return (
    <Group justify="space-between" wrap="nowrap" className="desk-list-head">
      <Title order={isOpen ? 2 : 1} size="h1">
        {t('conversations.title')}
      </Title>
      <Group gap={2} wrap="nowrap">
        <NotifyButton />
        <ActionIcon
          variant="subtle"
          color="gray"
          size="lg"
          aria-label={t('conversations.showRatings')}
          title={t('conversations.showRatings')}
          onClick={ratings.open}
        >
          <Icon name="thumbUp" />
        </ActionIcon>
        <ActionIcon
          component="a"
          href={exportAddress(filtersOf(search))}
          download="conversations.jsonl"
          variant="subtle"
          color="gray"
          size="lg"
          aria-label={t('conversations.exportAll')}
          title={t('conversations.exportAll')}
        >
          <Icon name="download" />
        </ActionIcon>
        <ActionIcon
          variant="subtle"
          color="gray"
          size="lg"
          visibleFrom="sm"
          aria-label={t('shell.shortcuts')}
          title={t('shell.shortcuts')}
          onClick={palette.showShortcuts}
        >
          <Icon name="keyboard" />
        </ActionIcon>
      </Group>
      {isRatingsOpen ? (
        <Suspense>
          <RatingsDialog agent={search.agent} isOpen onClose={ratings.close} />
        </Suspense>
      ) : null}
    </Group>
  )
}

/** Explains how to open a conversation, if the list contains any. */
function NothingOpen({ search }: Pick<ListHeadProps, 'search'>) {
  useTitle(t('conversations.title'))
  const { data } = useInfiniteQuery(conversationListQuery(filtersOf(search)))
  if (data?.pages[0]?.data.length === 0) return <div className="desk-nothing" />
  return (
    <div className="desk-nothing">
      <Icon name="conversations" size={32} />
      <Text size="sm" fw={500} c="var(--text)">
        {t('conversations.chooseOne')}
      </Text>
      <Text size="xs">
        {rich('conversations.chooseByKey', {
          next: <Kbd>J</Kbd>,
          previous: <Kbd>K</Kbd>,
          open: <Kbd>Enter</Kbd>,
        })}
      </Text>
    </div>
  )
}

/** Moves through the list with J and K. If the list is hidden, opens the next conversation at once. */
function useListKeys(openId: string | undefined): void {
  const isListHidden = useMediaQuery('(max-width: 48em)', false, { getInitialValueInEffect: false })
  const move = useCallback(
    (step: 1 | -1) => {
      const rows = [...document.querySelectorAll<HTMLAnchorElement>('.desk [data-row]')]
      const focused = rows.indexOf(document.activeElement as HTMLAnchorElement)
      const current = focused === -1 ? rows.findIndex((row) => row.ariaCurrent === 'true') : focused
      const next = rows[current === -1 ? 0 : current + step]
      if (isListHidden && openId !== undefined) next?.click()
      else next?.focus()
    },
    [isListHidden, openId],
  )
  useHotkeys([
    ['j', () => move(1)],
    ['k', () => move(-1)],
  ])
}
