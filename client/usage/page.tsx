/** What was called, by whom, and what it cost. */
import { PageHeader } from '../parts/PageHeader.tsx'
import { Empty } from '../parts/states.tsx'

export function UsagePage() {
  return (
    <>
      <PageHeader title="Usage" />
      <Empty icon="usage" title="No usage yet">
        Requests, tokens and times will be here once somebody has called.
      </Empty>
    </>
  )
}
