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
import { t } from '../strings/language.ts'
import { rich } from '../strings/rich.tsx'

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
    showDone(deleted.length === 1 ? t('files.deletedOne') : t('files.deletedMany'))
  }
  return (
    <>
      <PageHeader title={t('files.title')} about={t('files.about')} />
      <ListView
        label={t('files.title')}
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
        placeholder={t('files.searchBy')}
        filters={filters}
        bulk={[
          {
            label: t('files.deleteMenu'),
            isDangerous: true,
            run: (files) => {
              setDeleted(files)
              return undefined
            },
          },
        ]}
        menu={(file) => <FileMenuItems file={file} onDelete={() => setDeleted([file])} />}
        empty={
          <Empty icon="files" title={t('files.none')}>
            {t('files.noneHelp')}
          </Empty>
        }
      />
      <ConfirmDialog
        title={deleted.length > 1 ? t('files.deleteMany') : t('files.deleteOne')}
        isOpen={deleted.length > 0}
        onClose={() => setDeleted([])}
        onConfirm={remove}
        action={t('common.delete')}
        isDangerous
      >
        {deleted.length > 1
          ? t('files.deleteManyLoss', { number: deleted.length })
          : rich('files.deleteOneLoss', { name: <bdi>{deleted[0]?.filename}</bdi> })}
      </ConfirmDialog>
    </>
  )
}

const filters = [
  {
    name: 'purpose',
    label: t('files.purpose'),
    all: t('files.allPurposes'),
    options: ['assistants', 'batch', 'fine-tune', 'user_data', 'vision'].map((value) => ({
      value,
      label: value,
    })),
  },
]

const columns: readonly Column<StoredFile>[] = [
  {
    name: 'files.name',
    isMain: true,
    sort: 'name',
    render: ({ filename }) => (
      <Text span size="sm" fw={500}>
        <bdi>{filename}</bdi>
      </Text>
    ),
  },
  { name: 'files.purpose', render: ({ purpose }) => purpose },
  {
    name: 'files.size',
    sort: 'size',
    firstOrder: 'desc',
    isNumber: true,
    render: ({ bytes }) => renderSize(bytes),
  },
  {
    name: 'files.created',
    sort: 'created',
    firstOrder: 'desc',
    render: ({ created_at: at }) => <Ago seconds={at} />,
  },
  {
    name: 'files.expires',
    render: ({ expires_at: at }) => (at === undefined ? t('common.never') : <Ago seconds={at} />),
  },
]

function FileMenuItems({ file, onDelete }: { readonly file: StoredFile; readonly onDelete: () => void }) {
  return (
    <>
      <Menu.Item component="a" href={`/v1/manager/files/${file.id}/content`} download={file.filename}>
        {t('files.download')}
      </Menu.Item>
      <Menu.Item className="danger-text" onClick={onDelete}>
        {t('files.deleteMenu')}
      </Menu.Item>
    </>
  )
}
