/** What administrators see: users, keys, budgets and the audit log. */
import { PageHeader } from '../parts/PageHeader.tsx'
import { Empty } from '../parts/states.tsx'

export function AdminPage() {
  return (
    <>
      <PageHeader title="Administration" />
      <Empty icon="admin" title="Nothing to administer yet">
        Users, keys and the audit log will be here.
      </Empty>
    </>
  )
}
