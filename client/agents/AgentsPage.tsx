/** Lists the agents, with a search field and each agent's last day of use. */

import { Button, Menu } from '@mantine/core'
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import type { ComponentProps } from 'react'
import type { AgentListItem } from '../api.ts'
import type { Column } from '../components/DataTable.tsx'
import { ListView } from '../components/list/ListView.tsx'
import { PageHeader } from '../components/PageHeader.tsx'
import { Empty } from '../components/QueryStates.tsx'
import { Ago } from '../components/text.tsx'
import { problemOf } from '../failure.ts'
import { Checklist } from '../first-run/Checklist.tsx'
import { countSteps, STEPS, useFirstRun, useStoredFirstRun } from '../first-run/first-run.ts'
import { renderDay } from '../format.ts'
import { type AgentsSearch, changeSearch } from '../search.ts'
import { Icon } from '../shell/icons.tsx'
import { showDone, showProblem } from '../shell/toast.tsx'
import { t } from '../strings/language.ts'
import { binAgents } from './agent-bin.ts'
import { agentPageQuery } from './queries.ts'

export function AgentsPage() {
  const search = useSearch({ from: '/shell/agents' })
  const agents = useQuery({ ...agentPageQuery(search), placeholderData: keepPreviousData })
  const firstRun = useFirstRun()
  const [{ isHidden = false }, changeStored] = useStoredFirstRun()
  const { progress } = firstRun
  const hasChecklist = progress !== undefined && !isHidden && countSteps(progress) < STEPS
  // Shows the list and the checklist together, so that the list does not move.
  const isReady = progress !== undefined || firstRun.error !== null
  return (
    <>
      <PageHeader title={t('shell.agents')} about={t('agents.about')}>
        <NewAgentButton isMain={!hasChecklist} />
      </PageHeader>
      {hasChecklist ? (
        <Checklist progress={progress} onHide={() => changeStored({ isHidden: true })} />
      ) : null}
      <AgentList
        query={{ ...agents, data: isReady ? agents.data : undefined }}
        search={search}
        hasAction={!hasChecklist}
      />
    </>
  )
}

/** Fills the button only if it is the page's main action. */
function NewAgentButton({ isMain }: { readonly isMain: boolean }) {
  return (
    <Button
      component={Link}
      to="/agents/new"
      variant={isMain ? 'filled' : 'default'}
      leftSection={<Icon name="plus" size={16} />}
    >
      {t('shell.newAgent')}
    </Button>
  )
}

function NoAgents({ hasAction }: { readonly hasAction: boolean }) {
  return (
    <Empty icon="agents" title={t('agents.noAgents')} action={hasAction ? <NewAgentButton isMain /> : null}>
      {t('agents.noAgentsHelp')}
    </Empty>
  )
}

interface AgentListProps {
  readonly query: ComponentProps<typeof ListView<AgentListItem>>['query']
  readonly search: AgentsSearch
  readonly hasAction: boolean
}

function AgentList({ query, search, hasAction }: AgentListProps) {
  const navigate = useNavigate({ from: '/agents' })
  const queries = useQueryClient()
  return (
    <ListView
      label={t('shell.agents')}
      items="agents"
      columns={columns}
      query={query}
      idOf={({ id }) => id}
      nameOf={({ name }) => name}
      search={search}
      onSearch={(changes) =>
        void navigate({ search: (now) => changeSearch(now, changes), replace: 'q' in changes })
      }
      sorting={{ sort: 'created', order: 'desc' }}
      placeholder={t('agents.searchBy')}
      bulk={[
        {
          label: t('common.delete'),
          isDangerous: true,
          run: (agents) =>
            binAgents(
              queries,
              agents.map(({ id }) => id),
            ),
        },
      ]}
      menu={(agent) => (
        <AgentMenuItems
          agent={agent}
          onDelete={() =>
            void binAgents(queries, [agent.id]).catch((thrown) => showProblem(problemOf(thrown)))
          }
        />
      )}
      empty={<NoAgents hasAction={hasAction} />}
      onPhone="same"
      hasRowLinks
    />
  )
}

interface AgentMenuItemsProps {
  readonly agent: AgentListItem
  readonly onDelete: () => void
}

function AgentMenuItems({ agent: { id, agent_key: key }, onDelete }: AgentMenuItemsProps) {
  return (
    <>
      <Menu.Item
        renderRoot={(props) => <Link to="/agents/$agentId/embed" params={{ agentId: id }} {...props} />}
      >
        {t('agents.embed')}
      </Menu.Item>
      <Menu.Item renderRoot={(props) => <Link to="/conversations" search={{ agent: id }} {...props} />}>
        {t('agents.viewConversations')}
      </Menu.Item>
      <Menu.Item onClick={() => void copyText(id, t('agents.idCopied'))}>{t('agents.copyId')}</Menu.Item>
      <Menu.Item onClick={() => void copyText(key, t('agents.keyCopied'))}>{t('agents.copyKey')}</Menu.Item>
      <Menu.Item className="danger-text" onClick={onDelete}>
        {t('common.delete')}
      </Menu.Item>
    </>
  )
}

async function copyText(text: string, done: string): Promise<void> {
  await navigator.clipboard.writeText(text)
  showDone(done)
}

const columns: readonly Column<AgentListItem>[] = [
  {
    name: 'keys.name',
    isMain: true,
    sort: 'name',
    render: ({ id, name }) => (
      <Link to="/agents/$agentId" params={{ agentId: id }} className="row-link">
        {name}
      </Link>
    ),
  },
  { name: 'usage.model', render: ({ model }) => model },
  {
    name: 'agents.tools',
    isOptional: true,
    render: ({ tools }) =>
      tools.length === 0 ? (
        <span className="quiet">{t('common.none')}</span>
      ) : (
        t('agents.countTools', { count: tools.length })
      ),
  },
  { name: 'keys.lastUsed', render: ({ last_used_on: day }) => <LastUsed day={day ?? undefined} /> },
  {
    name: 'keys.created',
    sort: 'created',
    firstOrder: 'desc',
    isOptional: true,
    render: ({ created_at: seconds }) => (
      <span className="quiet">
        <Ago seconds={seconds} />
      </span>
    ),
  },
]

function LastUsed({ day }: { readonly day: string | undefined }) {
  return (
    <span className={day === undefined ? 'quiet last-used' : 'last-used'} title={day}>
      {day === undefined ? t('common.never') : renderDay(day)}
    </span>
  )
}
