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
import { Empty } from '../components/QueryStates.tsx'
import { Ago } from '../components/text.tsx'
import { problemOf } from '../failure.ts'
import { changeSearch } from '../search.ts'
import { showProblem } from '../shell/toast.tsx'
import { t } from '../strings/language.ts'
import { rich } from '../strings/rich.tsx'

type BinnedAgent = Outputs['agents']['listBin']['data'][number]

const PAGE_SIZE = 25

export function BinnedAgents() {
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
      <ListView
        label={t('bin.title')}
        items="binned"
        columns={columns}
        query={query}
        idOf={({ id }) => id}
        nameOf={({ name }) => name}
        search={{ after }}
        onSearch={(changes) => void navigate({ search: (now) => changeSearch(now, changes) })}
        sorting={{ sort: 'binned', order: 'desc' }}
        bulk={[
          { label: t('bin.restore'), run: restore },
          {
            label: t('bin.deleteForeverMenu'),
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
              {t('bin.restore')}
            </Menu.Item>
            <Menu.Item className="danger-text" onClick={() => setDeleted([agent])}>
              {t('bin.deleteForeverMenu')}
            </Menu.Item>
          </>
        )}
        empty={
          <Empty
            icon="trash"
            title={t('bin.empty')}
            action={
              <Anchor component={Link} to="/agents" size="sm">
                {t('shell.goToAgents')}
              </Anchor>
            }
          >
            {t('bin.emptyHelp')}
          </Empty>
        }
      />
      <ConfirmDialog
        title={t('bin.deleteForever')}
        isOpen={deleted.length > 0}
        onClose={() => setDeleted([])}
        onConfirm={() =>
          deleteForever(
            queries,
            deleted.map(({ id }) => id),
          )
        }
        action={t('bin.deleteForever')}
        isDangerous
      >
        {deleted.length === 1
          ? rich('bin.lossOne', { name: <bdi>{deleted[0]?.name}</bdi> })
          : t('bin.lossMany')}
      </ConfirmDialog>
    </>
  )
}

const columns: readonly Column<BinnedAgent>[] = [
  { name: 'common.agent', isMain: true, render: ({ name }) => <bdi>{name}</bdi> },
  { name: 'bin.deleted', render: ({ binned_at: at }) => <Ago seconds={at} /> },
  { name: 'bin.deletedForever', render: ({ purge_at: at }) => <Ago seconds={at} /> },
  { name: 'bin.created', render: ({ created_at: at }) => <Ago seconds={at} /> },
]
