/** Lists stored files, and downloads and deletes them. */
import { Button, Group, Text } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import type { Outputs } from '../api.ts'
import { api } from '../api.ts'
import { type Column, DataTable, nextOf, Pager } from '../components/DataTable.tsx'
import { ConfirmDialog } from '../components/Dialog.tsx'
import { PageHeader } from '../components/PageHeader.tsx'
import { Empty, Failed, Loading } from '../components/QueryStates.tsx'
import { Ago } from '../components/text.tsx'
import { renderSize } from '../format.ts'
import { showDone } from '../shell/toast.ts'

type StoredFile = Outputs['files']['list']['data'][number]
const PAGE_SIZE = 25

export function FilesPage() {
  const { after } = useSearch({ from: '/shell/files' })
  const navigate = useNavigate()
  const { data, error, refetch } = useQuery({
    queryKey: ['files', after],
    queryFn: () => api.files.list.query({ limit: PAGE_SIZE, after }),
  })
  return (
    <>
      <PageHeader title="Files" about="Files stored through the files API with your active key." />
      {error !== null && data === undefined ? (
        <Failed error={error} what="The files" retry={() => void refetch()} />
      ) : null}
      {data === undefined && error === null ? <Loading what="the files" /> : null}
      {data?.data.length === 0 ? <NoFiles isFirst={after === undefined} /> : null}
      {data === undefined || data.data.length === 0 ? null : <FileTable files={data.data} />}
      <Pager
        after={after}
        next={nextOf(data, ({ id }) => id)}
        onTurn={(next) => void navigate({ to: '/files', search: { after: next } })}
      />
    </>
  )
}

function NoFiles({ isFirst }: { readonly isFirst: boolean }) {
  return (
    <Empty icon="files" title={isFirst ? 'No files yet' : 'No older files'}>
      Upload files with POST /v1/files or with any official OpenAI client.
    </Empty>
  )
}

function FileTable({ files }: { readonly files: readonly StoredFile[] }) {
  const [deleted, setDeleted] = useState<StoredFile>()
  const queries = useQueryClient()
  const remove = async () => {
    await api.files.delete.mutate({ file_id: deleted?.id ?? '' })
    await queries.invalidateQueries({ queryKey: ['files'] })
    showDone('File deleted')
  }
  return (
    <>
      <DataTable
        label="Files"
        columns={[
          ...columns,
          {
            name: 'Actions',
            isBare: true,
            render: (file) => <Actions file={file} onDelete={() => setDeleted(file)} />,
          },
        ]}
        rows={files}
        keyOf={({ id }) => id}
      />
      <ConfirmDialog
        title="Delete file"
        isOpen={deleted !== undefined}
        onClose={() => setDeleted(undefined)}
        onConfirm={remove}
        action="Delete"
        isDangerous
      >
        <bdi>{deleted?.filename}</bdi> will be deleted permanently.
      </ConfirmDialog>
    </>
  )
}

const columns: readonly Column<StoredFile>[] = [
  {
    name: 'Name',
    render: ({ filename }) => (
      <Text span size="sm" fw={500}>
        <bdi>{filename}</bdi>
      </Text>
    ),
  },
  { name: 'Purpose', render: ({ purpose }) => purpose },
  { name: 'Size', isNumber: true, render: ({ bytes }) => renderSize(bytes) },
  { name: 'Created', render: ({ created_at: at }) => <Ago seconds={at} /> },
  {
    name: 'Expires',
    render: ({ expires_at: at }) => (at === undefined ? 'Never' : <Ago seconds={at} />),
  },
]

function Actions({ file, onDelete }: { readonly file: StoredFile; readonly onDelete: () => void }) {
  const { id, filename } = file
  return (
    <Group gap={6} justify="flex-end" wrap="nowrap">
      <Button
        component="a"
        variant="default"
        size="xs"
        href={`/v1/manager/files/${id}/content`}
        download={filename}
        aria-label={`Download ${filename}`}
      >
        Download
      </Button>
      <Button variant="default" size="xs" c="var(--bad)" aria-label={`Delete ${filename}`} onClick={onDelete}>
        Delete…
      </Button>
    </Group>
  )
}
