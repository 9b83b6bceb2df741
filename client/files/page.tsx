/** Stored files. */
import { PageHeader } from '../parts/PageHeader.tsx'
import { Empty } from '../parts/states.tsx'

export function FilesPage() {
  return (
    <>
      <PageHeader title="Files" />
      <Empty icon="files" title="No files yet">
        Stored files will be here.
      </Empty>
    </>
  )
}
