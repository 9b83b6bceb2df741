/** Lists the agents in the bin, which can be restored or deleted permanently. */
import { Anchor, Menu } from '@mantine/core'
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { deleteForever, restoreAgents } from '../agents/agent-bin.ts'
import { api, type Outputs } from '../api.ts'
import type { Column } from '../components/DataTable.tsx'
import { ConfirmDialog } from '../components/Dialog.tsx'
import { ListView } from '../components/list/ListView.tsx'
import { PageHeader } from '../components/PageHeader.tsx'
import { Empty } from '../components/QueryStates.tsx'
import { Ago } from '../components/text.tsx'
import { problemOf } from '../failure.ts'
import { changeSearch } from '../search.ts'
import { showProblem } from '../shell/toast.tsx'

type BinnedAgent = Outputs['agents']['listBin']['data'][number]

const PAGE_SIZE = 25

export function BinPage() {
  const { after } = useSearch({ from: '/shell/bin' })
  const navigate = useNavigate({ from: '/bin' })
  const queries = useQueryClient()
  const [deleted, setDeleted] = useState<readonly BinnedAgent[]>([])
  const query = useQuery({
    queryKey: ['agents', 'bin', after],
    queryFn: () => api.agents.listBin.query({ limit: PAGE_SIZE, after }),
    placeholderData: keepPreviousData,
  })
  const restore = (agents: readonly BinnedAgent[]) =>
    restoreAgents(
      queries,
      agents.map(({ id }) => id),
    )
  return (
    <>
      <PageHeader
        title="Bin"
        about="Deleted agents stay here for 30 days. Their keys do not work until you restore them."
      />
      <ListView
        label="Bin"
        items="agents in the bin"
        columns={columns}
        query={query}
        idOf={({ id }) => id}
        nameOf={({ name }) => name}
        search={{ after }}
        onSearch={(changes) => void navigate({ search: (now) => changeSearch(now, changes) })}
        sorting={{ sort: 'binned', order: 'desc' }}
        bulk={[
          { label: 'Restore', run: restore },
          {
            label: 'Delete forever…',
            isDangerous: true,
            run: (agents) => {
              setDeleted(agents)
              return undefined
            },
          },
        ]}
        menu={(agent) => (
          <>
            <Menu.Item
              onClick={() => void restore([agent]).catch((thrown) => showProblem(problemOf(thrown)))}
            >
              Restore
            </Menu.Item>
            <Menu.Item className="danger-text" onClick={() => setDeleted([agent])}>
              Delete forever…
            </Menu.Item>
          </>
        )}
        empty={
          <Empty
            icon="trash"
            title="The bin is empty"
            action={
              <Anchor component={Link} to="/agents" size="sm">
                Go to agents
              </Anchor>
            }
          >
            Agents that you delete appear here for 30 days.
          </Empty>
        }
      />
      <ConfirmDialog
        title="Delete forever"
        isOpen={deleted.length > 0}
        onClose={() => setDeleted([])}
        onConfirm={() =>
          deleteForever(
            queries,
            deleted.map(({ id }) => id),
          )
        }
        action="Delete forever"
        isDangerous
      >
        {deleted.length === 1 ? (
          <>
            <bdi>{deleted[0]?.name}</bdi>, its versions and its stored conversations will be deleted. This
            cannot be undone.
          </>
        ) : (
          'The selected agents, their versions and their stored conversations will be deleted. This cannot be undone.'
        )}
      </ConfirmDialog>
    </>
  )
}

const columns: readonly Column<BinnedAgent>[] = [
  { name: 'Agent', isMain: true, render: ({ name }) => <bdi>{name}</bdi> },
  { name: 'Deleted', render: ({ binned_at: at }) => <Ago seconds={at} /> },
  { name: 'Deleted forever', render: ({ purge_at: at }) => <Ago seconds={at} /> },
  { name: 'Created', render: ({ created_at: at }) => <Ago seconds={at} /> },
]
