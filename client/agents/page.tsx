/** The list of agents. */
import { PageHeader } from '../parts/PageHeader.tsx'
import { Empty } from '../parts/states.tsx'

export function AgentsPage() {
  return (
    <>
      <PageHeader title="Agents" />
      <Empty icon="agents" title="No agents yet">
        Agents will be here.
      </Empty>
    </>
  )
}
