/** Shows the Uploads page: the drop zone, uploads in progress and the list of artifacts. */
import './uploads.css'
import { Stack } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { PageHeader } from '../components/PageHeader.tsx'
import { changeSearch } from '../search.ts'
import { t } from '../strings/language.ts'
import { ArtifactDialog } from './ArtifactDialog.tsx'
import { ArtifactTable } from './ArtifactTable.tsx'
import { artifactsQuery, isActive, REFRESH_MS, useStatusStreams } from './artifacts.ts'
import { DropZone } from './DropZone.tsx'
import { SendingList } from './SendingList.tsx'

export function UploadsPage() {
  const search = useSearch({ from: '/shell/uploads' })
  const navigate = useNavigate({ from: '/uploads' })
  const change = (changes: Readonly<Record<string, string | undefined>>) =>
    void navigate({ search: (now) => changeSearch(now, changes), replace: 'q' in changes })
  const query = useQuery({
    ...artifactsQuery(search),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => (state.data?.data.some(isActive) ? REFRESH_MS : false),
  })
  const { data } = query
  useStatusStreams(data?.data ?? [])
  return (
    <>
      <PageHeader title={t('uploads.title')} about={t('uploads.about')} />
      <Stack gap="md">
        <DropZone />
        <SendingList />
        <ArtifactTable
          query={query}
          search={search}
          onSearch={change}
          onOpen={(artifact) => change({ artifact })}
        />
      </Stack>
      <ArtifactDialog
        id={search.artifact}
        artifacts={data?.data ?? []}
        onClose={() => change({ artifact: undefined })}
      />
    </>
  )
}
