/** Defines the queries of the conversation pages. */
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { api, type Outputs } from '../api.ts'
import type { ConversationsSearch } from '../search.ts'
import { t } from '../strings/language.ts'

export type Conversation = Outputs['conversations']['list']['data'][number]
export type Turn = Outputs['conversations']['turns']['data'][number]
export type Item = Outputs['conversations']['listItems']['data'][number]

const PAGE_SIZE = 25
const ITEMS_PAGE_SIZE = 100
/** Polling interval while a turn runs, in milliseconds. */
const REFRESH_MS = 3_000

const nextOf = ({ has_more, last_id }: { has_more: boolean; last_id: string | null }) =>
  has_more && last_id !== null ? last_id : undefined

export const conversationPageQuery = ({ sort: _, ...search }: ConversationsSearch) =>
  queryOptions({
    queryKey: ['conversations', 'list', search],
    queryFn: () => api.conversations.list.query({ limit: PAGE_SIZE, ...search }),
  })

export const conversationQuery = (id: string) =>
  queryOptions({
    queryKey: ['conversations', id],
    queryFn: () => api.conversations.get.query({ conversation_id: id }),
    refetchInterval: ({ state }) => (state.data && isRunning(state.data) ? REFRESH_MS : false),
  })

/** Lists the items, oldest first. `revision` changes when a turn ends, so that the items are fetched again. */
export const itemsQuery = (id: string, revision: string) =>
  infiniteQueryOptions({
    queryKey: ['conversations', id, 'items', revision],
    queryFn: ({ pageParam }) =>
      api.conversations.listItems.query({
        conversation_id: id,
        limit: ITEMS_PAGE_SIZE,
        order: 'asc',
        after: pageParam,
      }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: nextOf,
  })

export const turnsQuery = (id: string, revision: string) =>
  queryOptions({
    queryKey: ['conversations', id, 'turns', revision],
    queryFn: () => listAllTurns(id),
  })

async function listAllTurns(id: string): Promise<Turn[]> {
  const all: Turn[] = []
  let hasMore = true
  while (hasMore) {
    const after = all.at(-1)?.id
    const page = await api.conversations.turns.query({
      conversation_id: id,
      limit: ITEMS_PAGE_SIZE,
      order: 'asc',
      after,
    })
    all.push(...page.data)
    hasMore = page.has_more
  }
  return all
}

function isRunning({ parley }: Conversation): boolean {
  return parley?.last_status === 'in_progress' || parley?.last_status === 'queued'
}

export function titleOf({ parley }: Pick<Conversation, 'parley'>): string {
  return parley?.title ?? t('conversations.untitled')
}
