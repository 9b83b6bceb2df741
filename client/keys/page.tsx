/** Parent keys and agent keys. */
import { PageHeader } from '../parts/PageHeader.tsx'
import { Empty } from '../parts/states.tsx'

export function KeysPage() {
  return (
    <>
      <PageHeader title="Keys" />
      <Empty icon="keys" title="No keys yet">
        Parent keys and agent keys will be here.
      </Empty>
    </>
  )
}
