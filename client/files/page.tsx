/** Lists stored files, and downloads and deletes them. */
import { Menu, Text } from '@mantine/core'
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import type { Outputs } from '../api.ts'
import { api } from '../api.ts'
import type { Column } from '../components/DataTable.tsx'
import { ConfirmDialog } from '../components/Dialog.tsx'
import { ListView } from '../components/list/ListView.tsx'
import { PageHeader } from '../components/PageHeader.tsx'
import { Empty } from '../components/QueryStates.tsx'
import { Ago } from '../components/text.tsx'
import { renderSize } from '../format.ts'
import { changeSearch } from '../search.ts'
import { showDone } from '../shell/toast.tsx'

type StoredFile = Outputs['files']['list']['data'][number]
const PAGE_SIZE = 25

export function FilesPage() {
  const search = useSearch({ from: '/shell/files' })
  const navigate = useNavigate({ from: '/files' })
  const queries = useQueryClient()
  const [deleted, setDeleted] = useState<readonly StoredFile[]>([])
  const query = useQuery({
    queryKey: ['files', search],
    queryFn: () => api.files.list.query({ limit: PAGE_SIZE, ...search }),
    placeholderData: keepPreviousData,
  })
  const remove = async () => {
    await Promise.all(deleted.map(({ id }) => api.files.delete.mutate({ file_id: id }))).finally(() =>
      queries.invalidateQueries({ queryKey: ['files'] }),
    )
    showDone(deleted.length === 1 ? 'File deleted' : 'Files deleted')
  }
  return (
    <>
      <PageHeader title="Files" about="Files stored through the files API with your active key." />
      <ListView
        label="Files"
        items="files"
        columns={columns}
        query={query}
        idOf={({ id }) => id}
        nameOf={({ filename }) => filename}
        search={search}
        onSearch={(changes) =>
          void navigate({ search: (now) => changeSearch(now, changes), replace: 'q' in changes })
        }
        sorting={{ sort: 'created', order: 'desc' }}
        placeholder="Search by name or ID"
        filters={filters}
        bulk={[
          {
            label: 'Delete…',
            isDangerous: true,
            run: (files) => {
              setDeleted(files)
              return undefined
            },
          },
        ]}
        menu={(file) => <FileMenuItems file={file} onDelete={() => setDeleted([file])} />}
        empty={
          <Empty icon="files" title="No files yet">
            Upload files with POST /v1/files or with any official OpenAI client.
          </Empty>
        }
      />
      <ConfirmDialog
        title={deleted.length > 1 ? 'Delete files' : 'Delete file'}
        isOpen={deleted.length > 0}
        onClose={() => setDeleted([])}
        onConfirm={remove}
        action="Delete"
        isDangerous
      >
        {deleted.length > 1 ? (
          `The ${deleted.length} selected files will be deleted permanently.`
        ) : (
          <>
            <bdi>{deleted[0]?.filename}</bdi> will be deleted permanently.
          </>
        )}
      </ConfirmDialog>
    </>
  )
}

const filters = [
  {
    name: 'purpose',
    label: 'Purpose',
    all: 'All purposes',
    options: ['assistants', 'batch', 'fine-tune', 'user_data', 'vision'].map((value) => ({
      value,
      label: value,
    })),
  },
]

const columns: readonly Column<StoredFile>[] = [
  {
    name: 'Name',
    isMain: true,
    sort: 'name',
    render: ({ filename }) => (
      <Text span size="sm" fw={500}>
        <bdi>{filename}</bdi>
      </Text>
    ),
  },
  { name: 'Purpose', render: ({ purpose }) => purpose },
  {
    name: 'Size',
    sort: 'size',
    firstOrder: 'desc',
    isNumber: true,
    render: ({ bytes }) => renderSize(bytes),
  },
  {
    name: 'Created',
    sort: 'created',
    firstOrder: 'desc',
    render: ({ created_at: at }) => <Ago seconds={at} />,
  },
  {
    name: 'Expires',
    render: ({ expires_at: at }) => (at === undefined ? 'Never' : <Ago seconds={at} />),
  },
]

function FileMenuItems({ file, onDelete }: { readonly file: StoredFile; readonly onDelete: () => void }) {
  return (
    <>
      <Menu.Item component="a" href={`/v1/manager/files/${file.id}/content`} download={file.filename}>
        Download
      </Menu.Item>
      <Menu.Item className="danger-text" onClick={onDelete}>
        Delete…
      </Menu.Item>
    </>
  )
}
