/** Defines the queries of the visitor pages. */
import { queryOptions } from '@tanstack/react-query'
import { api, type Outputs } from '../api.ts'
import type { VisitorsSearch } from '../search.ts'
import { t } from '../strings/language.ts'

export type Visitor = Outputs['visitors']['get']
export type Erasure = Outputs['erasures']['get']
export type VisitorConversation = Outputs['conversations']['list']['data'][number]

const PAGE_SIZE = 25
const CONVERSATIONS = 10
/** Polling interval while an erasure runs, in milliseconds. */
const REFRESH_MS = 1_000

export const visitorPageQuery = ({ q, agent, after }: VisitorsSearch) =>
  queryOptions({
    queryKey: ['visitors', 'list', { q, agent, after }],
    queryFn: () => api.visitors.list.query({ limit: PAGE_SIZE, q, agent, after }),
  })

export const visitorQuery = (id: string) =>
  queryOptions({
    queryKey: ['visitors', 'one', id],
    queryFn: () => api.visitors.get.query({ visitor_id: id }),
  })

export const conversationsOfVisitorQuery = (id: string) =>
  queryOptions({
    queryKey: ['visitors', 'conversations', id],
    queryFn: () => api.conversations.list.query({ limit: CONVERSATIONS, visitor: id }),
  })

export const erasureQuery = (id: string) =>
  queryOptions({
    queryKey: ['visitors', 'erasure', id],
    queryFn: () => api.erasures.get.query({ erasure_id: id }),
    refetchInterval: ({ state }) => (state.data?.status === 'running' ? REFRESH_MS : false),
  })

/** Returns the most recognizable name of a visitor. */
export function nameOfVisitor({ kind, name, email, subject }: Visitor): string {
  return name ?? email ?? (kind === 'anonymous' ? t('visitors.anonymousVisitor') : subject)
}

/** Returns the last characters of an id, which distinguish visitors in a list. */
export function shortId(id: string): string {
  return `…${id.slice(-6)}`
}
