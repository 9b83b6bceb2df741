/** Loads the messages and turns of a conversation, and follows its events while the page is visible. */
import { useDocumentVisibility } from '@mantine/hooks'
import { type QueryClient, useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { api, type Outputs } from '../../api.ts'
import { followStream } from '../../follow-stream.ts'
import { markStored } from '../answer/outbox.ts'
import {
  conversationQuery,
  itemsQuery,
  loadConversation,
  loadNewerItems,
  loadNewerTurns,
  turnsQuery,
} from '../queries.ts'

type FeedEvent = Outputs['conversations']['follow'] extends AsyncIterable<infer Event> ? Event : never

/** The answer that is being written; the service stores its items when it ends. */
export interface LiveAnswer {
  readonly turnId: string
  readonly text: string
}

export function useTranscript(id: string) {
  const queries = useQueryClient()
  const items = useInfiniteQuery(itemsQuery(id))
  const turns = useQuery(turnsQuery(id))
  const [live, setLive] = useState<LiveAnswer>()
  const [isConnected, setIsConnected] = useState(true)
  const cursor = useRef<string>(undefined)
  const isVisible = useDocumentVisibility() === 'visible'
  const refresh = useRefresh(queries, id)

  useEffect(() => {
    if (!isVisible) return
    const leaving = new AbortController()
    const receive = ({ id: position, event, data }: FeedEvent) => {
      cursor.current = position
      if (event === 'conversation.turn.delta')
        return setLive((now) => addText(now, data.turn, data.text ?? ''))
      if (event === 'conversation.turn.started') setLive({ turnId: data.turn.id, text: '' })
      const clientId = event === 'conversation.item' ? data.item.client_id : null
      if (clientId !== null) void markStored(clientId, refresh)
      // The replaced turns may be older than those that `refresh` loads.
      if (event === 'conversation.replaced') void queries.refetchQueries(turnsQuery(id))
      void refresh().then(() => {
        if (event === 'conversation.turn.ended')
          setLive((now) => (now?.turnId === data.turn.id ? undefined : now))
      })
    }
    const open = async (signal: AbortSignal) => {
      if (cursor.current === undefined) {
        // Reads the stream's position before the messages, so that the stream contains all later changes.
        cursor.current = (await api.conversations.open.query({ conversation: id }, { signal })).cursor
        await refresh()
      }
      setIsConnected(true)
      const query = { conversation: id, cursor: cursor.current }
      return api.conversations.follow.query(query, { signal, context: { isBackground: true } })
    }
    // The page shows that the conversation is deleted when its query fails.
    const onRejection = () => {
      void queries.refetchQueries(conversationQuery(id))
      void queries.invalidateQueries({ queryKey: ['conversations', 'list'] })
    }
    const onConnection = setIsConnected
    void followStream({ open, onEvent: receive, onConnection, onRejection, signal: leaving.signal })
    return () => leaving.abort()
  }, [id, isVisible, queries, refresh])

  const loaded = useMemo(() => items.data?.pages.flatMap(({ data }) => data).toReversed() ?? [], [items.data])
  return { items, loaded, turns: turns.data, turnsError: turns.error, live, isConnected, refresh }
}

export type TranscriptData = ReturnType<typeof useTranscript>

function addText(now: LiveAnswer | undefined, turnId: string, text: string): LiveAnswer {
  return { turnId, text: now?.turnId === turnId ? now.text + text : text }
}

/** Returns a function that loads what has changed; calls during a load share the next one. */
function useRefresh(queries: QueryClient, id: string): () => Promise<void> {
  const last = useRef(Promise.resolve())
  const next = useRef<Promise<void>>(undefined)
  return useCallback(() => {
    next.current ??= last.current.then(async () => {
      next.current = undefined
      const loading = [
        loadNewerItems(queries, id),
        loadNewerTurns(queries, id),
        loadConversation(queries, id),
      ]
      // A failure is not shown, because the next event or the retry of the first load repeats the request.
      await Promise.allSettled(loading)
    })
    last.current = next.current
    return next.current
  }, [queries, id])
}
