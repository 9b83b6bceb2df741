/** Shows how to embed an agent: its appearance with a preview, the code and the allowed origins. */
import { Alert, Button, Group, Stack, Tabs, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useMemo, useRef, useState } from 'react'
import { readDefinition } from '../agents/definition-text.ts'
import { ConflictDialog } from '../agents/edit/ConflictDialog.tsx'
import { type Draft, type Saving, useCheck, useDraft, useSave } from '../agents/edit/use-editor.ts'
import { valueAt } from '../agents/object-paths.ts'
import { listedAgentQuery, modelsQuery, useAgent } from '../agents/queries.ts'
import type { AgentDetail } from '../api.ts'
import { CodeBlock } from '../components/CopyButton.tsx'
import { LeaveGuard } from '../components/Dialog.tsx'
import { Failed, Loading } from '../components/QueryStates.tsx'
import { TextLink } from '../components/text.tsx'
import { useStoredFirstRun } from '../first-run/first-run.ts'
import { t } from '../strings/language.ts'
import { rich } from '../strings/rich.tsx'
import { defaultPageOptions, listChanges, readOptions } from './appearance.ts'
import { BudgetProposal } from './BudgetProposal.tsx'
import { type Options, renderCurl, renderReact, renderScript } from './embed-code.ts'
import { OriginCheck, readPublicAgent } from './OriginCheck.tsx'
import { Preview } from './Preview.tsx'
import { ThemeForm } from './ThemeForm.tsx'
import { VisitorIdentity } from './VisitorIdentity.tsx'
import './embed.css'

export function EmbedPage() {
  const agent = useAgent()
  const { data: listed, error, refetch } = useQuery(listedAgentQuery(agent.agent_id))
  const models = useQuery(modelsQuery)
  // Waits for the models, so that the preview does not move when its notice appears.
  const areModelsPending = models.data === undefined && models.failureReason === null
  const agentKey = listed?.agent_key
  if (agentKey === undefined && error !== null) {
    return <Failed error={error} what="agentKey" retry={() => void refetch()} />
  }
  if (agentKey === undefined || areModelsPending) return <Loading what="agentKey" rows={3} height={120} />
  return <EmbedAgent key={agent.agent_id} agent={agent} agentKey={agentKey} />
}

interface EmbedAgentProps {
  readonly agent: AgentDetail
  readonly agentKey: string
}

function EmbedAgent({ agent, agentKey }: EmbedAgentProps) {
  const { agent_id: id, yaml: text, format, version } = agent
  const draft = useDraft({ text, format, version })
  const check = useCheck(draft.text, draft.format)
  const saving = useSave(id, draft)
  const [page, setPage] = useState(defaultPageOptions)
  const isDirty = useRef(false)
  isDirty.current = draft.isDirty
  const saved = useMemo(
    () => readDefinition(draft.saved.text, draft.format) ?? {},
    [draft.saved.text, draft.format],
  )
  const options = useMemo(() => readOptions(draft.value), [draft.value])
  const changes = listChanges(draft.value, saved, page)
  return (
    <Stack gap="md">
      <BudgetProposal agentId={id} />
      <div className="embed-layout">
        <Stack gap="sm" component="section" className="panel" p="md" aria-label={t('embed.appearance')}>
          <Title order={2}>{t('embed.appearance')}</Title>
          <ThemeForm draft={draft} check={check} page={page} onPageChange={setPage} />
          <Actions draft={draft} saving={saving} canSave={check.isGood} />
        </Stack>
        <Preview agentKey={agentKey} version={draft.saved.version} options={options} page={page} />
      </div>
      <div className="two-columns">
        <Snippets agentId={id} agentKey={agentKey} options={changes} isDirty={draft.isDirty} />
        <OriginCheck agentId={id} agent={readPublicAgent(agent)} />
      </div>
      <VisitorIdentity agentId={id} />
      <ConflictDialog draft={draft} saving={saving} />
      <LeaveGuard isDirty={isDirty} loss={t('common.leaveAgent')} />
    </Stack>
  )
}

interface ActionsProps {
  readonly draft: Draft
  readonly saving: Saving
  readonly canSave: boolean
}

function Actions({ draft, saving, canSave }: ActionsProps) {
  const hasTheme = valueAt(draft.value, ['embed', 'theme']) !== undefined
  return (
    <Stack gap="xs">
      {saving.error === undefined ? null : (
        <Alert color="red" role="alert">
          {saving.error}
        </Alert>
      )}
      <Group gap="xs">
        <Button disabled={!draft.isDirty || !canSave} loading={saving.isSaving} onClick={() => saving.save()}>
          {t('embed.saveToAgent')}
        </Button>
        <Button variant="default" disabled={!draft.isDirty} onClick={() => draft.setText(draft.saved.text)}>
          {t('common.discard')}
        </Button>
        <Button
          variant="subtle"
          disabled={!hasTheme}
          onClick={() => draft.change(['embed', 'theme'], undefined)}
        >
          {t('embed.reset')}
        </Button>
      </Group>
      <Text size="xs" c="dimmed" role="status">
        {draft.isDirty
          ? t('embed.changedSince', { version: draft.saved.version })
          : t('embed.savedAs', { version: draft.saved.version })}
      </Text>
    </Stack>
  )
}

interface SnippetsProps {
  readonly agentId: string
  readonly agentKey: string
  readonly options: Options
  readonly isDirty: boolean
}

function Snippets({ agentId, agentKey, options, isDirty }: SnippetsProps) {
  const { as = 'script' } = useSearch({ from: '/shell/agents/$agentId/embed' })
  const navigate = useNavigate({ from: '/agents/$agentId/embed' })
  const [, changeFirstRun] = useStoredFirstRun()
  const onCopy = () => changeFirstRun({ isEmbedded: true })
  const embedding = { origin: window.location.origin, agentKey, options }
  return (
    <Stack gap="sm" component="section" className="panel" p="md" aria-label={t('embed.code')}>
      <Title order={2}>{t('embed.code')}</Title>
      <Tabs
        value={as}
        keepMounted={false}
        onChange={(next) => void navigate({ search: { as: next as typeof as }, replace: true })}
      >
        <Tabs.List mb="sm">
          <Tabs.Tab value="script">{t('embed.script')}</Tabs.Tab>
          <Tabs.Tab value="react">{t('embed.react')}</Tabs.Tab>
          <Tabs.Tab value="api">{t('conversations.api')}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="script">
          <CodeBlock what={t('embed.scriptIs')} code={renderScript(embedding)} onCopy={onCopy} />
        </Tabs.Panel>
        <Tabs.Panel value="react">
          <CodeBlock what={t('embed.reactIs')} code={renderReact(embedding)} onCopy={onCopy} />
        </Tabs.Panel>
        <Tabs.Panel value="api">
          <CodeBlock what={t('embed.apiIs')} code={renderCurl(embedding)} onCopy={onCopy} />
        </Tabs.Panel>
      </Tabs>
      {isDirty ? <Text size="sm">{t('embed.unsavedCode')}</Text> : null}
      <Text size="xs" c="dimmed">
        {rich('embed.publicKey', {
          link: (
            <TextLink to="/keys" search={{ tab: 'agent', agent: agentId }} underline="always" inherit>
              {t('embed.rotateLink')}
            </TextLink>
          ),
        })}
      </Text>
    </Stack>
  )
}
