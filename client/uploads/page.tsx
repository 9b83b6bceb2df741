/** Resumable uploads and what became of them. */
import { PageHeader } from '../parts/PageHeader.tsx'
import { Empty } from '../parts/states.tsx'

export function UploadsPage() {
  return (
    <>
      <PageHeader title="Uploads" />
      <Empty icon="uploads" title="No uploads yet">
        Videos, captions and thumbnails will be here.
      </Empty>
    </>
  )
}
