/** Lists the agents, with a search field and each agent's last day of use. */
import { Button, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import type { AgentListItem } from '../api.ts'
import { type Column, DataTable } from '../components/DataTable.tsx'
import { PageHeader } from '../components/PageHeader.tsx'
import { Empty, Failed, Loading } from '../components/QueryStates.tsx'
import { Ago } from '../components/text.tsx'
import { Checklist } from '../first-run/Checklist.tsx'
import { countSteps, STEPS, useFirstRun, useStoredFirstRun } from '../first-run/first-run.ts'
import { renderCount, renderDay } from '../format.ts'
import { Icon } from '../shell/icons.tsx'
import { agentsQuery, lastDaysQuery } from './queries.ts'

export function AgentsPage() {
  const { data, error, refetch } = useQuery(agentsQuery)
  const firstRun = useFirstRun()
  const [{ isHidden = false }, changeStored] = useStoredFirstRun()
  const { progress } = firstRun
  const hasChecklist = progress !== undefined && !isHidden && countSteps(progress) < STEPS
  // Shows the list and the checklist together, so that the list does not move.
  const agents = progress !== undefined || firstRun.error !== null ? data : undefined
  return (
    <>
      <PageHeader title="Agents" about="Each agent has a name, instructions, tools and its own key.">
        <NewAgentButton isMain={!hasChecklist} />
      </PageHeader>
      {agents === undefined && error === null ? <Loading what="the agents" rows={6} /> : null}
      {agents === undefined && error !== null ? (
        <Failed error={error} what="The agents" retry={() => void refetch()} />
      ) : null}
      {hasChecklist ? (
        <Checklist progress={progress} onHide={() => changeStored({ isHidden: true })} />
      ) : null}
      {agents?.length === 0 ? <NoAgents hasAction={!hasChecklist} /> : null}
      {agents !== undefined && agents.length > 0 ? <FoundAgents agents={agents} /> : null}
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

function FoundAgents({ agents }: { readonly agents: readonly AgentListItem[] }) {
  const { q = '' } = useSearch({ from: '/shell/agents' })
  const navigate = useNavigate({ from: '/agents' })
  const words = q.toLowerCase().split(/\s+/).filter(Boolean)
  const found = agents.filter((agent) => {
    const text = `${agent.name} ${agent.model} ${agent.id}`.toLowerCase()
    return words.every((word) => text.includes(word))
  })
  return (
    <>
      <TextInput
        aria-label="Search agents"
        data-search
        placeholder="Search by name, model or ID"
        leftSection={<Icon name="search" size={16} />}
        maw={360}
        mb="md"
        value={q}
        onChange={(event) => {
          const { value } = event.currentTarget
          void navigate({ search: value === '' ? {} : { q: value }, replace: true })
        }}
      />
      <div aria-live="polite">
        {found.length === 0 ? (
          <Empty icon="search" title="No matching agents">
            No agent has “{q}” in its name, model or ID.
          </Empty>
        ) : (
          <AgentTable agents={found} />
        )}
      </div>
    </>
  )
}

const columns: readonly Column<AgentListItem>[] = [
  {
    name: 'Name',
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
  { name: 'Last used', render: ({ id }) => <LastUsed agentId={id} /> },
  {
    name: 'Created',
    isOptional: true,
    render: ({ created_at: seconds }) => (
      <span className="quiet">
        <Ago seconds={seconds} />
      </span>
    ),
  },
]

function AgentTable({ agents }: { readonly agents: readonly AgentListItem[] }) {
  return (
    <DataTable
      label="Agents"
      columns={columns}
      rows={agents}
      keyOf={({ id }) => id}
      onPhone="same"
      hasRowLinks
    />
  )
}

function LastUsed({ agentId }: { readonly agentId: string }) {
  const { data: lastDays } = useQuery(lastDaysQuery)
  const lastDay = lastDays?.get(agentId)
  if (lastDay === undefined) return <span className="quiet">Never</span>
  return <span title={lastDay}>{renderDay(lastDay)}</span>
}
