/** Loads the start of the list again when conversations have changed. */
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { api, type Outputs } from '../../api.ts'
import type { ConversationFilters } from '../../search.ts'
import { followShared } from '../../shared-stream.ts'
import { useKeyId } from '../../shell/use-me.ts'
import { loadFirstPage } from '../queries.ts'

type Stream = Outputs['conversations']['changes']
type Changes = Stream extends AsyncIterable<infer Event> ? Event : never

/** Follows the active key's conversations. The server sends at most one event per second. */
export function useLiveList(filters: ConversationFilters): void {
  const queries = useQueryClient()
  const keyId = useKeyId()
  const shown = useRef(filters)
  shown.current = filters
  useEffect(() => {
    const leaving = new AbortController()
    let changed: Changes['conversations'] | undefined
    let isLoading = false
    const load = async () => {
      isLoading = true
      while (changed !== undefined && !leaving.signal.aborted) {
        const ids = changed
        changed = undefined
        // The next event loads the list again after a failure.
        await loadFirstPage(queries, shown.current, ids).catch(() => undefined)
      }
      isLoading = false
    }
    followShared<Changes>({
      name: `parley-changes-${keyId}`,
      open: (signal) => api.conversations.changes.query({}, { signal, context: { isBackground: true } }),
      onEvent({ conversations: ids }) {
        changed = ids === null || changed === null ? null : [...(changed ?? []), ...ids]
        if (!isLoading) void load()
      },
      signal: leaving.signal,
    })
    return () => leaving.abort()
  }, [queries, keyId])
}
