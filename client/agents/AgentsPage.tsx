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
import { renderCount, renderDay } from '../format.ts'
import { type AgentsSearch, changeSearch } from '../search.ts'
import { Icon } from '../shell/icons.tsx'
import { showDone, showProblem } from '../shell/toast.tsx'
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
      <PageHeader title="Agents" about="Each agent has a name, instructions, tools and its own key.">
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

/** Only the page's main action is filled. */
function NewAgentButton({ isMain }: { readonly isMain: boolean }) {
  return (
    <Button
      component={Link}
      to="/agents/new"
      variant={isMain ? 'filled' : 'default'}
      leftSection={<Icon name="plus" size={16} />}
    >
      New agent
    </Button>
  )
}

function NoAgents({ hasAction }: { readonly hasAction: boolean }) {
  return (
    <Empty icon="agents" title="No agents yet" action={hasAction ? <NewAgentButton isMain /> : null}>
      Start from a template. You can change everything later.
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
      label="Agents"
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
      placeholder="Search by name or ID"
      bulk={[
        {
          label: 'Delete',
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
        Embed
      </Menu.Item>
      <Menu.Item renderRoot={(props) => <Link to="/conversations" search={{ agent: id }} {...props} />}>
        View conversations
      </Menu.Item>
      <Menu.Item onClick={() => void copyText(id, 'Agent ID copied')}>Copy agent ID</Menu.Item>
      <Menu.Item onClick={() => void copyText(key, 'Agent key copied')}>Copy agent key</Menu.Item>
      <Menu.Item className="danger-text" onClick={onDelete}>
        Delete
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
    name: 'Name',
    isMain: true,
    sort: 'name',
    render: ({ id, name }) => (
      <Link to="/agents/$agentId" params={{ agentId: id }} className="row-link">
        {name}
      </Link>
    ),
  },
  { name: 'Model', render: ({ model }) => model },
  {
    name: 'Tools',
    isOptional: true,
    render: ({ tools }) =>
      tools.length === 0 ? <span className="quiet">None</span> : renderCount(tools.length, 'tool'),
  },
  { name: 'Last used', render: ({ last_used_on: day }) => <LastUsed day={day ?? undefined} /> },
  {
    name: 'Created',
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
      {day === undefined ? 'Never' : renderDay(day)}
    </span>
  )
}
