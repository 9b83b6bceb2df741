/** Shows the header, menu and tabs that all pages of an agent share. */

import { ActionIcon, Anchor, Breadcrumbs, Menu } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, Outlet, useNavigate, useParams } from '@tanstack/react-router'
import type { AgentDetail } from '../api.ts'
import { api } from '../api.ts'
import { BudgetNotice } from '../budgets/BudgetNotice.tsx'
import { ConfirmDialog } from '../components/Dialog.tsx'
import { PageHeader } from '../components/PageHeader.tsx'
import { Failed, Loading } from '../components/QueryStates.tsx'
import { problemOf, toFailure } from '../failure.ts'
import { UnknownPage } from '../shell/ErrorPage.tsx'
import { Icon } from '../shell/icons.tsx'
import { showDone, showProblem } from '../shell/toast.tsx'
import { t } from '../strings/language.ts'
import { binAgents } from './agent-bin.ts'
import { exportDefinition } from './definition-files.ts'
import { changeDefinition } from './definition-text.ts'
import { agentQuery, refreshAgentLists } from './queries.ts'

export function AgentPage() {
  const { agentId } = useParams({ from: '/shell/agents/$agentId' })
  const { data: agent, error, refetch } = useQuery(agentQuery(agentId))
  if (agent !== undefined) return <KnownAgent agent={agent} />
  if (error === null) return <Loading what="agent" rows={3} height={96} />
  if (toFailure(error).status === 404) return <UnknownPage />
  return <Failed error={error} what="agent" retry={() => void refetch()} />
}

function KnownAgent({ agent }: { readonly agent: AgentDetail }) {
  return (
    <>
      <Breadcrumbs mb={4}>
        <Anchor component={Link} to="/agents" size="sm">
          {t('shell.agents')}
        </Anchor>
      </Breadcrumbs>
      <PageHeader title={agent.definition.name} isTight>
        <AgentMenu agent={agent} />
      </PageHeader>
      <AgentTabs agentId={agent.agent_id} />
      <BudgetNotice agentId={agent.agent_id} />
      <Outlet />
    </>
  )
}

const tabs = [
  { to: '/agents/$agentId', label: 'agents.edit' },
  { to: '/agents/$agentId/embed', label: 'agents.embed' },
  { to: '/agents/$agentId/models', label: 'agents.models' },
  { to: '/agents/$agentId/history', label: 'agents.history' },
] as const

function AgentTabs({ agentId }: { readonly agentId: string }) {
  return (
    <nav className="tabs" aria-label={t('agents.pages')}>
      {tabs.map(({ to, label }) => (
        <Link
          key={to}
          to={to}
          params={{ agentId }}
          className="tab"
          activeOptions={{ exact: true, includeSearch: false }}
        >
          {t(label)}
        </Link>
      ))}
    </nav>
  )
}

function AgentMenu({ agent }: { readonly agent: AgentDetail }) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const moveToBin = async () => {
    await binAgents(queries, [agent.agent_id], () => navigate({ to: '/agents', ignoreBlocker: true }))
  }
  const [isDuplicating, duplicating] = useDisclosure(false)
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="default" size="lg" aria-label={t('agents.moreActions')}>
            <Icon name="dots" />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item leftSection={<Icon name="copy" size={16} />} onClick={() => void copyId(agent.agent_id)}>
            {t('agents.copyId')}
          </Menu.Item>
          <Menu.Item
            leftSection={<Icon name="keys" size={16} />}
            renderRoot={(props) => (
              <Link to="/keys" search={{ tab: 'agent', agent: agent.agent_id }} {...props} />
            )}
          >
            {t('agents.viewKey')}
          </Menu.Item>
          <Menu.Item leftSection={<Icon name="plus" size={16} />} onClick={duplicating.open}>
            {t('agents.duplicateAgent')}
          </Menu.Item>
          <Menu.Item leftSection={<Icon name="down" size={16} />} onClick={() => exportDefinition(agent)}>
            {t(agent.format === 'yaml' ? 'agents.exportYaml' : 'agents.exportMarkdown')}
          </Menu.Item>
          <Menu.Item
            className="danger-text"
            leftSection={<Icon name="trash" size={16} />}
            onClick={() => void moveToBin().catch((thrown) => showProblem(problemOf(thrown)))}
          >
            {t('agents.deleteAgent')}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <DuplicateDialog agent={agent} isOpen={isDuplicating} onClose={duplicating.close} />
    </>
  )
}

async function copyId(id: string): Promise<void> {
  await navigator.clipboard.writeText(id)
  showDone(t('agents.idCopied'))
}

interface AgentDialogProps {
  readonly agent: AgentDetail
  readonly isOpen: boolean
  readonly onClose: () => void
}

const MAX_NAME_LENGTH = 200

function DuplicateDialog({ agent, isOpen, onClose }: AgentDialogProps) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const { yaml: text, format, definition } = agent
  const suffixLength = t('agents.copyName', { name: '' }).length
  const name = t('agents.copyName', { name: definition.name.slice(0, MAX_NAME_LENGTH - suffixLength) })
  async function duplicate(): Promise<void> {
    const yaml = changeDefinition(text, format, ['name'], name)
    const { agent_id: agentId } = await api.agents.create.mutate({ yaml, format })
    await refreshAgentLists(queries)
    await navigate({ to: '/agents/$agentId', params: { agentId } })
  }
  return (
    <ConfirmDialog
      title={t('agents.duplicateAgent')}
      isOpen={isOpen}
      onClose={onClose}
      onConfirm={duplicate}
      action={t('agents.duplicate')}
    >
      {t('agents.duplicateAbout', { name })}
    </ConfirmDialog>
  )
}
