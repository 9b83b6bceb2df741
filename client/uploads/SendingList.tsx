/** What is being sent from here, and what a reload has interrupted. */
import { Stack } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useSyncExternalStore } from 'react'
import { SendingRow } from './SendingRow.tsx'
import { UnfinishedRow } from './UnfinishedRow.tsx'
import { listUnfinished, listUploads, onUploads } from './uploader.ts'

export function SendingList() {
  const uploads = useSyncExternalStore(onUploads, listUploads)
  const unfinished = useUnfinished(uploads.length)
  useFreshList(uploads.map(({ id, state }) => `${id} ${state}`).join())
  const interrupted = (unfinished ?? []).filter(
    ({ filename, sizeBytes }) =>
      !uploads.some((one) => one.filename === filename && one.sizeBytes === sizeBytes),
  )
  if (uploads.length + interrupted.length === 0) return null
  return (
    <Stack className="panel sending" gap={0} component="section" aria-label="Being sent from this browser">
      {uploads.map((upload) => (
        <SendingRow key={upload.id} {...upload} />
      ))}
      {interrupted.map((upload) => (
        <UnfinishedRow key={upload.stored.urlStorageKey} upload={upload} />
      ))}
    </Stack>
  )
}

/** Asked again whenever an upload comes or goes. */
function useUnfinished(count: number) {
  return useQuery({ queryKey: ['unfinished-uploads', count], queryFn: listUnfinished }).data
}

/** The list of artifacts is asked for again when an upload begins, ends or stops. */
function useFreshList(states: string): void {
  const queries = useQueryClient()
  useEffect(() => {
    if (states !== '') void queries.invalidateQueries({ queryKey: ['artifacts', 'list'] })
  }, [states, queries])
}
