/** Defines the queries of the conversation pages. */
import {
  type InfiniteData,
  infiniteQueryOptions,
  type QueryClient,
  queryOptions,
} from '@tanstack/react-query'
import { api, type Outputs } from '../api.ts'
import type { ConversationFilters } from '../search.ts'
import { t } from '../strings/language.ts'
import { toServerFilters } from './list/filters.ts'

type ConversationPage = Outputs['conversations']['list']
export type Conversation = ConversationPage['data'][number]
export type Turn = Outputs['conversations']['turns']['data'][number]
export type TurnDetails = Outputs['conversations']['turn']
export type Rating = Turn['ratings'][number]
type ItemPage = Outputs['conversations']['listItems']
export type Item = ItemPage['data'][number]
export type Note = Outputs['conversations']['listNotes']['data'][number]

const PAGE_SIZE = 30
const ITEMS_PAGE_SIZE = 100
/** Number of newest turns that are loaded again after a change. */
const CHANGED_TURNS = 20

const nextOf = ({ has_more, last_id }: { has_more: boolean; last_id: string | null }) =>
  has_more && last_id !== null ? last_id : undefined

export const conversationListQuery = (filters: ConversationFilters) =>
  infiniteQueryOptions({
    queryKey: ['conversations', 'list', filters],
    queryFn: ({ pageParam }) => api.conversations.list.query(pageOf(filters, pageParam)),
    initialPageParam: undefined as string | undefined,
    // Other pages may have lost conversations that have moved to the first one.
    getNextPageParam: (last, pages) =>
      last.has_more ? pages.findLast(({ data }) => data.length > 0)?.data.at(-1)?.id : undefined,
  })

function pageOf(filters: ConversationFilters, after?: string) {
  return { limit: PAGE_SIZE, sort: 'activity' as const, ...toServerFilters(filters), after }
}

/**
 * Loads the first page of a list again after the conversations have changed; null if any may have. Loads all
 * pages again if one of the conversations is on another page.
 */
export async function loadFirstPage(
  queries: QueryClient,
  filters: ConversationFilters,
  changed: readonly string[] | null,
): Promise<void> {
  // Other lists are loaded again when the user opens them.
  void queries.invalidateQueries({ queryKey: ['conversations', 'list'], refetchType: 'none' })
  const { queryKey } = conversationListQuery(filters)
  const page = await api.conversations.list.query(pageOf(filters), { context: { isBackground: true } })
  const list = queries.setQueryData(queryKey, (loaded) => loaded && replaceFirstPage(loaded, page))
  const others = new Set(list?.pages.slice(1).flatMap(({ data }) => data.map(({ id }) => id)))
  const isOutdated = changed === null ? others.size > 0 : changed.some((id) => others.has(id))
  if (isOutdated) await queries.invalidateQueries({ queryKey, exact: true })
}

type LoadedList = InfiniteData<ConversationPage>

/** Replaces the first page, and keeps the conversations that are now after it. */
function replaceFirstPage({ pages, pageParams }: LoadedList, page: ConversationPage): LoadedList {
  const [first, ...others] = pages
  if (first === undefined || others.length === 0 || !page.has_more)
    return { pages: [page], pageParams: [undefined] }
  const shown = new Set(page.data.map(({ id }) => id))
  const end = page.data.at(-1)?.parley?.last_at ?? 0
  const moved = first.data.filter(({ id, parley }) => !shown.has(id) && (parley?.last_at ?? 0) <= end)
  const rest = others.map((other) => ({ ...other, data: other.data.filter(({ id }) => !shown.has(id)) }))
  return { pages: [{ ...page, data: [...page.data, ...moved] }, ...rest], pageParams }
}

export const conversationQuery = (id: string) =>
  queryOptions({
    queryKey: ['conversations', 'one', id],
    queryFn: () => api.conversations.get.query({ conversation_id: id }),
  })

/**
 * Lists the items, newest first, so that a long conversation opens at its end. Newer items are added with
 * `loadNewerItems`, because a refetch would load all pages again.
 */
export const itemsQuery = (id: string) =>
  infiniteQueryOptions({
    queryKey: ['conversations', 'items', id],
    queryFn: ({ pageParam }) =>
      api.conversations.listItems.query({
        conversation_id: id,
        limit: ITEMS_PAGE_SIZE,
        order: 'desc',
        after: pageParam,
      }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: nextOf,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  })

/** Adds the items that were stored after the loaded ones. */
export async function loadNewerItems(queries: QueryClient, id: string): Promise<void> {
  const options = itemsQuery(id)
  await queries.ensureInfiniteQueryData(options)
  for (let hasMore = true; hasMore; ) {
    const newest = queries.getQueryData(options.queryKey)?.pages.flatMap(({ data }) => data)[0]?.id
    const page = await api.conversations.listItems.query({
      conversation_id: id,
      limit: ITEMS_PAGE_SIZE,
      order: 'asc',
      after: newest,
    })
    queries.setQueryData(options.queryKey, (loaded) => addNewer(loaded, page.data))
    hasMore = page.has_more
  }
}

type LoadedItems = InfiniteData<ItemPage>

function addNewer(loaded: LoadedItems | undefined, items: readonly Item[]): LoadedItems | undefined {
  const [first, ...rest] = loaded?.pages ?? []
  if (loaded === undefined || first === undefined) return loaded
  const known = new Set(loaded.pages.flatMap(({ data }) => data.map(({ id }) => id)))
  const added = items.filter(({ id }) => !known.has(id)).toReversed()
  if (added.length === 0) return loaded
  return { ...loaded, pages: [{ ...first, data: [...added, ...first.data] }, ...rest] }
}

/** Lists all turns, oldest first. */
export const turnsQuery = (id: string) =>
  queryOptions({
    queryKey: ['conversations', 'turns', id],
    queryFn: () => listAllTurns(id),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  })

async function listAllTurns(id: string): Promise<Turn[]> {
  const all: Turn[] = []
  let hasMore = true
  while (hasMore) {
    const page = await api.conversations.turns.query({
      conversation_id: id,
      limit: ITEMS_PAGE_SIZE,
      order: 'asc',
      after: all.at(-1)?.id,
    })
    all.push(...page.data)
    hasMore = page.has_more
  }
  return all
}

/** Loads the newest turns again, because the status of a turn changes when it ends. */
export async function loadNewerTurns(queries: QueryClient, id: string): Promise<void> {
  const options = turnsQuery(id)
  await queries.ensureQueryData(options)
  const { data } = await api.conversations.turns.query({
    conversation_id: id,
    limit: CHANGED_TURNS,
    order: 'desc',
  })
  queries.setQueryData(options.queryKey, (known = []) => {
    const changed = new Set(data.map((turn) => turn.id))
    return [...known.filter((turn) => !changed.has(turn.id)), ...data.toReversed()]
  })
}

/** Loads a conversation again, and shows it in every list that contains it. */
export async function loadConversation(queries: QueryClient, id: string): Promise<void> {
  const conversation = await api.conversations.get.query({ conversation_id: id })
  showConversation(queries, conversation)
}

/** Shows a changed conversation on its page and in every list that contains it. */
export function showConversation(queries: QueryClient, conversation: Omit<Conversation, 'match'>): void {
  const { id } = conversation
  queries.setQueryData(conversationQuery(id).queryKey, conversation)
  queries.setQueriesData<InfiniteData<ConversationPage>>(
    { queryKey: ['conversations', 'list'] },
    (list) =>
      list && {
        ...list,
        pages: list.pages.map((page) => ({
          ...page,
          data: page.data.map((one) => (one.id === id ? { ...one, ...conversation } : one)),
        })),
      },
  )
}

/** Loads a turn with its diagnostics, which are complete when the turn has ended. */
export const turnQuery = ({ id, status }: Pick<Turn, 'id' | 'status'>) =>
  queryOptions({
    queryKey: ['conversations', 'turn', id, status],
    queryFn: () => api.conversations.turn.query({ turn_id: id }),
    staleTime: 60_000,
  })

export const notesQuery = (id: string) =>
  queryOptions({
    queryKey: ['conversations', 'notes', id],
    queryFn: async () => (await api.conversations.listNotes.query({ conversation_id: id })).data,
  })

export function isRunning({ status }: Pick<Turn, 'status'>): boolean {
  return status === 'in_progress' || status === 'queued'
}

export function titleOf({ parley }: Pick<Conversation, 'parley'>): string {
  return parley?.title ?? t('conversations.untitled')
}

/**
 * Returns the visitor's name. Without a name, returns the subject, or the word for an anonymous visitor.
 * Returns undefined for a conversation without a visitor.
 */
export function visitorOf({ parley }: Pick<Conversation, 'parley'>): string | undefined {
  const visitor = parley?.visitor
  if (visitor == null) return undefined
  return visitor.name ?? (visitor.kind === 'anonymous' ? t('conversations.anonymous') : visitor.subject)
}
