/** Shows the uploads page: the drop zone, uploads in progress and the list of artifacts. */
import './uploads.css'
import { Stack } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { nextOf, Pager } from '../components/DataTable.tsx'
import { PageHeader } from '../components/PageHeader.tsx'
import { Empty, Failed, Loading } from '../components/QueryStates.tsx'
import { ArtifactDialog } from './ArtifactDialog.tsx'
import { ArtifactTable } from './ArtifactTable.tsx'
import { artifactsQuery, isActive, REFRESH_MS, useStatusStreams } from './artifacts.ts'
import { DropZone } from './DropZone.tsx'
import { SendingList } from './SendingList.tsx'

export function UploadsPage() {
  const { after, artifact } = useSearch({ from: '/shell/uploads' })
  const navigate = useNavigate()
  const go = (search: { after?: string | undefined; artifact?: string | undefined }) =>
    void navigate({ to: '/uploads', search })
  const { data, error, refetch } = useQuery({
    ...artifactsQuery(after),
    refetchInterval: ({ state }) => (state.data?.data.some(isActive) ? REFRESH_MS : false),
  })
  useStatusStreams(data?.data ?? [])
  return (
    <>
      <PageHeader
        title="Uploads"
        about="Upload videos, images, captions and projects. Interrupted uploads resume where they stopped."
      />
      <Stack gap="md">
        <DropZone />
        <SendingList />
        {error !== null && data === undefined ? (
          <Failed error={error} what="The uploads" retry={() => void refetch()} />
        ) : null}
        {data === undefined && error === null ? <Loading what="the uploads" /> : null}
        {data?.data.length === 0 ? (
          <Empty icon="uploads" title={after === undefined ? 'No uploads yet' : 'No older uploads'}>
            Drop a file above, or upload from your own page with a token (see docs/uploads.md).
          </Empty>
        ) : null}
        {data === undefined || data.data.length === 0 ? null : (
          <ArtifactTable artifacts={data.data} onOpen={(id) => go({ after, artifact: id })} />
        )}
      </Stack>
      <Pager
        after={after}
        next={nextOf(data, ({ artifactId }) => artifactId)}
        onTurn={(next) => go({ after: next })}
      />
      <ArtifactDialog id={artifact} artifacts={data?.data ?? []} onClose={() => go({ after })} />
    </>
  )
}
