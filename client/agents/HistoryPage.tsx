/** Lists an agent's versions, compares them and restores them. */

import { Badge, Button, Group, SegmentedControl, Stack, Text, Title, UnstyledButton } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import type { AgentVersion } from '../api.ts'
import { api } from '../api.ts'
import { CodeBlock } from '../components/CopyButton.tsx'
import { DiffView } from '../components/code/lazy-code.tsx'
import { ConfirmDialog } from '../components/Dialog.tsx'
import { Failed, Loading } from '../components/QueryStates.tsx'
import { Ago } from '../components/text.tsx'
import { showDone } from '../shell/toast.tsx'
import { useMe } from '../shell/use-me.ts'
import { t } from '../strings/language.ts'
import { useAgent, versionsQuery } from './queries.ts'
import './editor.css'

export function HistoryPage() {
  const { agent_id: id } = useAgent()
  const { data: versions, error, refetch } = useQuery(versionsQuery(id))
  if (versions === undefined && error === null) return <Loading what="versions" rows={3} />
  if (versions === undefined) return <Failed error={error} what="versions" retry={() => void refetch()} />
  return <History agentId={id} versions={versions.toSorted((one, other) => other.version - one.version)} />
}

interface HistoryProps {
  readonly agentId: string
  /** Ordered newest first. */
  readonly versions: readonly AgentVersion[]
}

function History({ agentId, versions }: HistoryProps) {
  const search = useSearch({ from: '/shell/agents/$agentId/history' })
  const navigate = useNavigate({ from: '/agents/$agentId/history' })
  const chosen = versions.find(({ version }) => version === search.version) ?? versions[0]
  return (
    <div className="history">
      <Stack gap={4} component="nav" aria-label={t('agents.versions')}>
        {versions.map((one) => (
          <UnstyledButton
            key={one.version}
            className="version"
            aria-current={one === chosen}
            onClick={() =>
              void navigate({ search: (old) => ({ ...old, version: one.version }), replace: true })
            }
          >
            <Group justify="space-between" wrap="nowrap">
              <Text size="sm" fw={500}>
                {t('agents.version', { number: one.version })}
              </Text>
              <VersionBadge version={one} versions={versions} />
            </Group>
            {one.note === null ? null : (
              <Text size="xs" lineClamp={2} title={one.note}>
                {one.note}
              </Text>
            )}
            <Text size="xs" c="dimmed" truncate>
              <Ago seconds={one.created_at} /> · {one.name}
            </Text>
            {one.author === null ? null : <Author author={one.author} />}
          </UnstyledButton>
        ))}
      </Stack>
      {chosen === undefined ? null : <VersionView agentId={agentId} version={chosen} versions={versions} />}
    </div>
  )
}

/** Shows the name of a key instead of its id, if the key belongs to the user. */
function Author({ author }: { readonly author: string }) {
  const { keys } = useMe()
  const name = keys.find(({ id }) => id === author)?.name
  return (
    <Text size="xs" c="dimmed" truncate title={author}>
      {name === undefined ? t('agents.by', { author }) : t('agents.byKey', { name })}
    </Text>
  )
}

interface VersionBadgeProps {
  readonly version: AgentVersion
  readonly versions: readonly AgentVersion[]
}

/** Marks the live version and the newest of the other versions. */
function VersionBadge({ version, versions }: VersionBadgeProps) {
  if (version.current) {
    return (
      <Badge size="sm" variant="light" className="accent-badge">
        {t('agents.live')}
      </Badge>
    )
  }
  if (version !== versions.find((one) => !one.current)) return null
  return (
    <Badge size="sm" variant="default">
      {t('agents.previous')}
    </Badge>
  )
}

interface VersionViewProps extends HistoryProps {
  readonly version: AgentVersion
}

function VersionView({ agentId, version, versions }: VersionViewProps) {
  const { against = 'before' } = useSearch({ from: '/shell/agents/$agentId/history' })
  const navigate = useNavigate({ from: '/agents/$agentId/history' })
  const current = versions.find((one) => one.current)
  const before = versions.find((one) => one.version === version.version - 1)
  const [from, to] = against === 'before' ? [before, version] : [version, current]
  return (
    <Stack gap="sm" component="section" aria-label={t('agents.version', { number: version.version })}>
      <Group justify="space-between">
        <Title order={2}>{titleOf(from, to)}</Title>
        <Group gap="xs">
          {version.current ? null : (
            <SegmentedControl
              size="xs"
              aria-label={t('agents.compareWith')}
              data={[
                {
                  value: 'before',
                  label: t(before === undefined ? 'agents.definition' : 'agents.versionBefore'),
                },
                { value: 'current', label: t('agents.liveVersion') },
              ]}
              value={against}
              onChange={(value) =>
                void navigate({
                  search: (old) => ({ ...old, against: value as 'before' | 'current' }),
                  replace: true,
                })
              }
            />
          )}
          {version.current ? null : <RestoreButton agentId={agentId} version={version.version} />}
        </Group>
      </Group>
      {version.note === null ? null : <Text size="sm">{version.note}</Text>}
      {from === undefined ? (
        <div className="first-version">
          <CodeBlock code={version.yaml} what={t('agents.definitionOf', { number: version.version })} />
        </div>
      ) : (
        <DiffView before={from.yaml} after={to?.yaml ?? ''} label={titleOf(from, to)} />
      )}
    </Stack>
  )
}

function titleOf(from: AgentVersion | undefined, to: AgentVersion | undefined): string {
  if (from === undefined) return t('agents.firstVersion', { number: to?.version ?? 1 })
  return t('agents.changes', { from: from.version, to: to?.version ?? '' })
}

function RestoreButton({ agentId, version }: { readonly agentId: string; readonly version: number }) {
  const [isOpen, { open, close }] = useDisclosure(false)
  const queries = useQueryClient()
  const navigate = useNavigate({ from: '/agents/$agentId/history' })
  async function restore(): Promise<void> {
    await api.agents.restore.mutate({ agent_id: agentId, version })
    await queries.invalidateQueries({ queryKey: ['agents'] })
    await navigate({ search: {}, replace: true })
    showDone(t('agents.restored', { number: version }))
  }
  return (
    <>
      <Button size="xs" onClick={open}>
        {t('agents.restore')}
      </Button>
      <ConfirmDialog
        title={t('agents.restoreTitle', { number: version })}
        isOpen={isOpen}
        onClose={close}
        onConfirm={restore}
        action={t('agents.restore')}
      >
        {t('agents.restoreAbout')}
      </ConfirmDialog>
    </>
  )
}
