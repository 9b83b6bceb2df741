/** Lists the agents, with a search field and each agent's last day of use. */
import { Button, Table, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import type { AgentListItem } from '../api.ts'
import { PageHeader } from '../components/PageHeader.tsx'
import { Empty, Failed, Loading } from '../components/QueryStates.tsx'
import { Ago } from '../components/text.tsx'
import { renderCount, renderDay } from '../format.ts'
import { Icon } from '../shell/icons.tsx'
import { agentsQuery, lastDaysQuery } from './queries.ts'

export function AgentsPage() {
  const { data: agents, error, refetch } = useQuery(agentsQuery)
  return (
    <>
      <PageHeader title="Agents" about="Each agent has a name, instructions, tools and its own key.">
        <NewAgentButton />
      </PageHeader>
      {agents === undefined && error === null ? <Loading what="the agents" rows={6} /> : null}
      {agents === undefined && error !== null ? (
        <Failed error={error} what="The agents" retry={() => void refetch()} />
      ) : null}
      {agents?.length === 0 ? <NoAgents /> : null}
      {agents !== undefined && agents.length > 0 ? <FoundAgents agents={agents} /> : null}
    </>
  )
}

function NewAgentButton() {
  return (
    <Button component={Link} to="/agents/new" leftSection={<Icon name="plus" size={16} />}>
      New agent
    </Button>
  )
}

function NoAgents() {
  return (
    <Empty icon="agents" title="No agents yet" action={<NewAgentButton />}>
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

function AgentTable({ agents }: { readonly agents: readonly AgentListItem[] }) {
  return (
    <div className="panel">
      <Table highlightOnHover verticalSpacing="sm" horizontalSpacing="md" layout="fixed">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Name</Table.Th>
            <Table.Th visibleFrom="xs">Model</Table.Th>
            <Table.Th visibleFrom="md" w={110}>
              Tools
            </Table.Th>
            <Table.Th w={130}>Last used</Table.Th>
            <Table.Th visibleFrom="md" w={150}>
              Created
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {agents.map((agent) => (
            <AgentRow key={agent.id} agent={agent} />
          ))}
        </Table.Tbody>
      </Table>
    </div>
  )
}

function AgentRow({ agent }: { readonly agent: AgentListItem }) {
  const { data: lastDays } = useQuery(lastDaysQuery)
  const lastDay = lastDays?.get(agent.id)
  return (
    <Table.Tr className="link-row">
      <Table.Td>
        <Link to="/agents/$agentId" params={{ agentId: agent.id }} className="row-link">
          {agent.name}
        </Link>
      </Table.Td>
      <Table.Td visibleFrom="xs">
        <Text size="sm" truncate>
          {agent.model}
        </Text>
      </Table.Td>
      <Table.Td visibleFrom="md">
        <Text size="sm" c={agent.tools.length === 0 ? 'dimmed' : undefined}>
          {agent.tools.length === 0 ? 'None' : renderCount(agent.tools.length, 'tool')}
        </Text>
      </Table.Td>
      <Table.Td>
        <Text size="sm" c={lastDay === undefined ? 'dimmed' : undefined} title={lastDay}>
          {lastDay === undefined ? 'Never' : renderDay(lastDay)}
        </Text>
      </Table.Td>
      <Table.Td visibleFrom="md">
        <Text size="sm" c="dimmed">
          <Ago seconds={agent.created_at} />
        </Text>
      </Table.Td>
    </Table.Tr>
  )
}
