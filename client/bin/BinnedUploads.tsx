/** Lists the uploads in the bin, which can be restored or deleted permanently. */
import { Anchor, Menu } from '@mantine/core'
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { api, type Outputs } from '../api.ts'
import type { Column } from '../components/DataTable.tsx'
import { ConfirmDialog } from '../components/Dialog.tsx'
import { ListView } from '../components/list/ListView.tsx'
import { Empty } from '../components/QueryStates.tsx'
import { Ago } from '../components/text.tsx'
import { problemOf } from '../failure.ts'
import { renderSize } from '../format.ts'
import { changeSearch } from '../search.ts'
import { showProblem } from '../shell/toast.tsx'
import { t } from '../strings/language.ts'
import { rich } from '../strings/rich.tsx'
import { deleteArtifactsForever, restoreArtifacts } from '../uploads/artifact-bin.ts'
import { kindNames } from '../uploads/artifacts.ts'

type BinnedUpload = Outputs['artifacts']['listBin']['data'][number]

const PAGE_SIZE = 25

export function BinnedUploads() {
  const { after } = useSearch({ from: '/shell/bin' })
  const navigate = useNavigate({ from: '/bin' })
  const queries = useQueryClient()
  const [deleted, setDeleted] = useState<readonly BinnedUpload[]>([])
  const query = useQuery({
    queryKey: ['artifacts', 'bin', after],
    queryFn: () => api.artifacts.listBin.query({ limit: PAGE_SIZE, after }),
    placeholderData: keepPreviousData,
  })
  const restore = (uploads: readonly BinnedUpload[]) =>
    restoreArtifacts(
      queries,
      uploads.map(({ artifactId }) => artifactId),
    )
  return (
    <>
      <ListView
        label={t('uploads.title')}
        items="binnedUploads"
        columns={columns}
        query={query}
        idOf={({ artifactId }) => artifactId}
        nameOf={titleOf}
        search={{ after }}
        onSearch={(changes) => void navigate({ search: (now) => changeSearch(now, changes) })}
        sorting={{ sort: 'binned', order: 'desc' }}
        bulk={[
          { label: t('bin.restore'), run: restore },
          {
            label: t('bin.deleteForeverMenu'),
            isDangerous: true,
            run: (uploads) => {
              setDeleted(uploads)
              return undefined
            },
          },
        ]}
        menu={(upload) => (
          <>
            <Menu.Item
              onClick={() => void restore([upload]).catch((thrown) => showProblem(problemOf(thrown)))}
            >
              {t('bin.restore')}
            </Menu.Item>
            <Menu.Item className="danger-text" onClick={() => setDeleted([upload])}>
              {t('bin.deleteForeverMenu')}
            </Menu.Item>
          </>
        )}
        empty={
          <Empty
            icon="trash"
            title={t('bin.empty')}
            action={
              <Anchor component={Link} to="/uploads" size="sm">
                {t('uploads.title')}
              </Anchor>
            }
          >
            {t('bin.emptyHelpUploads')}
          </Empty>
        }
      />
      <ConfirmDialog
        title={t('bin.deleteForever')}
        isOpen={deleted.length > 0}
        onClose={() => setDeleted([])}
        onConfirm={() =>
          deleteArtifactsForever(
            queries,
            deleted.map(({ artifactId }) => artifactId),
          )
        }
        action={t('bin.deleteForever')}
        isDangerous
      >
        {deleted.length === 1
          ? rich('bin.lossUpload', { name: <bdi>{deleted[0] && titleOf(deleted[0])}</bdi> })
          : t('bin.lossUploads')}
      </ConfirmDialog>
    </>
  )
}

const titleOf = ({ name, filename }: BinnedUpload) => name ?? filename

const columns: readonly Column<BinnedUpload>[] = [
  { name: 'uploads.name', isMain: true, render: (upload) => <bdi>{titleOf(upload)}</bdi> },
  { name: 'uploads.kind', render: ({ kind }) => kindNames[kind] },
  { name: 'uploads.size', isNumber: true, render: ({ size }) => renderSize(size) },
  { name: 'bin.deleted', render: ({ binnedAt }) => <Ago seconds={binnedAt} /> },
  { name: 'bin.deletedForever', render: ({ purgeAt }) => <Ago seconds={purgeAt} /> },
]
