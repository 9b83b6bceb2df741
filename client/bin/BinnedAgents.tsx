/** Lists the agents in the bin. */
import { deleteForever, restoreAgents } from '../agents/agent-bin.ts'
import { api, type Outputs } from '../api.ts'
import type { Column } from '../components/DataTable.tsx'
import { Ago, TextLink } from '../components/text.tsx'
import { t } from '../strings/language.ts'
import { rich } from '../strings/rich.tsx'
import { BinnedList } from './BinnedList.tsx'

type BinnedAgent = Outputs['agents']['listBin']['data'][number]

export function BinnedAgents() {
  return (
    <BinnedList
      label={t('bin.title')}
      items="binned"
      columns={columns}
      queryKey="agents"
      list={(page) => api.agents.listBin.query(page)}
      idOf={({ id }) => id}
      nameOf={({ name }) => name}
      restore={restoreAgents}
      deleteForever={deleteForever}
      lossOf={(name) => rich('bin.lossOne', { name })}
      lossOfMany={t('bin.lossMany')}
      emptyHelp={t('bin.emptyHelp')}
      emptyLink={
        <TextLink to="/agents" size="sm">
          {t('shell.goToAgents')}
        </TextLink>
      }
    />
  )
}

const columns: readonly Column<BinnedAgent>[] = [
  { name: 'common.agent', isMain: true, render: ({ name }) => <bdi>{name}</bdi> },
  { name: 'bin.deleted', render: ({ binned_at: at }) => <Ago seconds={at} /> },
  { name: 'bin.deletedForever', render: ({ purge_at: at }) => <Ago seconds={at} /> },
  { name: 'bin.created', render: ({ created_at: at }) => <Ago seconds={at} /> },
]
