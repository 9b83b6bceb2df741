/** Lists the uploads in the bin. */
import { api, type Outputs } from '../api.ts'
import type { Column } from '../components/DataTable.tsx'
import { Ago, TextLink } from '../components/text.tsx'
import { renderSize } from '../format.ts'
import { t } from '../strings/language.ts'
import { rich } from '../strings/rich.tsx'
import { deleteArtifactsForever, restoreArtifacts } from '../uploads/artifact-bin.ts'
import { kindNames } from '../uploads/artifacts.ts'
import { BinnedList } from './BinnedList.tsx'

type BinnedUpload = Outputs['artifacts']['listBin']['data'][number]

export function BinnedUploads() {
  return (
    <BinnedList
      label={t('uploads.title')}
      items="binnedUploads"
      columns={columns}
      queryKey="artifacts"
      list={(page) => api.artifacts.listBin.query(page)}
      idOf={({ artifactId }) => artifactId}
      nameOf={titleOf}
      restore={restoreArtifacts}
      deleteForever={deleteArtifactsForever}
      lossOf={(name) => rich('bin.lossUpload', { name })}
      lossOfMany={t('bin.lossUploads')}
      emptyHelp={t('bin.emptyHelpUploads')}
      emptyLink={
        <TextLink to="/uploads" size="sm">
          {t('uploads.title')}
        </TextLink>
      }
    />
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
