/** Creates an agent from a template or an imported file, which it opens in the editor. */
import { Alert, Anchor, Breadcrumbs, Button, FileButton, Group, SimpleGrid, Stack, Text } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { type DragEvent, useRef, useState } from 'react'
import { api, type DefinitionFormat } from '../api.ts'
import { LeaveGuard } from '../components/Dialog.tsx'
import { PageHeader } from '../components/PageHeader.tsx'
import { problemOf } from '../failure.ts'
import { showDone } from '../shell/toast.tsx'
import { useMe } from '../shell/use-me.ts'
import { type ImportedDefinition, importDefinition } from './definition-files.ts'
import { Editor } from './edit/Editor.tsx'
import { useStoredDraft } from './edit/stored-draft.ts'
import { type Draft, useCheck, useDraft } from './edit/use-editor.ts'
import { moveStoredTests } from './playground/stored-tests.ts'
import { moveTrial } from './playground/trial.ts'
import { refreshAgentLists } from './queries.ts'
import { templates } from './templates.ts'
import './editor.css'
import { t } from '../strings/language.ts'

/** The definition that a new agent starts from. */
interface Start {
  readonly title: string
  readonly text: string
  readonly format: DefinitionFormat
  /** Identifies the stored draft; undefined for an imported file, which the user can import again. */
  readonly draftId: string | undefined
}

export function NewAgentPage() {
  const { template: id } = useSearch({ from: '/shell/agents/new' })
  const [imported, setImported] = useState<ImportedDefinition>()
  const start = findStart(id, imported)
  return (
    <>
      <Breadcrumbs mb={4}>
        <Anchor component={Link} to="/agents" size="sm">
          {t('shell.agents')}
        </Anchor>
      </Breadcrumbs>
      {start === undefined ? (
        <ChooseTemplate onImport={setImported} />
      ) : (
        <NewAgent key={start.draftId ?? 'file'} start={start} />
      )}
    </>
  )
}

function findStart(id: string | undefined, imported: ImportedDefinition | undefined): Start | undefined {
  const template = templates.find((one) => one.id === id)
  if (template !== undefined) {
    return { title: t(template.title), text: template.yaml, format: 'yaml', draftId: `new-${template.id}` }
  }
  return imported && { ...imported, title: imported.filename, draftId: undefined }
}

interface ImportProps {
  readonly onImport: (imported: ImportedDefinition) => void
}

function ChooseTemplate({ onImport }: ImportProps) {
  return (
    <>
      <PageHeader title={t('shell.newAgent')} about={t('agents.newAbout')} />
      <SimpleGrid cols={{ base: 1, xs: 2, lg: 3 }}>
        {templates.map(({ id, title, about }) => (
          <Link key={id} to="/agents/new" search={{ template: id }} className="panel template-card">
            <Text fw={500}>{t(title)}</Text>
            <Text size="sm" c="dimmed">
              {t(about)}
            </Text>
          </Link>
        ))}
      </SimpleGrid>
      <ImportZone onImport={onImport} />
    </>
  )
}

function ImportZone({ onImport }: ImportProps) {
  const [isOver, setIsOver] = useState(false)
  const [problem, setProblem] = useState<string>()
  const read = (file: File | null | undefined) => {
    if (file == null) return
    importDefinition(file).then(onImport, (error: Error) => setProblem(error.message))
  }
  const drop = (event: DragEvent) => {
    event.preventDefault()
    setIsOver(false)
    read(event.dataTransfer.files[0])
  }
  return (
    <Stack gap="sm" mt="lg">
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the button inside does the same without dragging */}
      <div
        className="panel import-zone"
        data-over={isOver}
        onDragOver={(event) => {
          event.preventDefault()
          setIsOver(true)
        }}
        onDragLeave={() => setIsOver(false)}
        onDrop={drop}
      >
        <Group justify="space-between" gap="md">
          <Stack gap={2}>
            <Text fw={500}>{t('agents.import')}</Text>
            <Text size="sm" c="dimmed">
              {t('agents.importHelp')}
            </Text>
          </Stack>
          <FileButton
            onChange={read}
            accept=".yaml,.yml,.md,.markdown"
            inputProps={{ 'aria-label': t('agents.importFile') }}
          >
            {(props) => (
              <Button variant="default" {...props}>
                {t('agents.chooseFile')}
              </Button>
            )}
          </FileButton>
        </Group>
      </div>
      {problem === undefined ? null : (
        <Alert color="red" role="alert">
          {problem}
        </Alert>
      )}
    </Stack>
  )
}

function NewAgent({ start }: { readonly start: Start }) {
  const draft = useDraft({ text: start.text, format: start.format, version: 0 })
  const check = useCheck(draft.text, draft.format)
  const offer = useStoredDraft(start.draftId, draft)
  const isDirty = useRef(false)
  isDirty.current = draft.isDirty
  const trialId = start.draftId ?? NEW_TRIAL
  const { mutate, isPending, error } = useCreate(draft, trialId, isDirty)
  const create = () => {
    if (check.problems.length === 0 && !isPending) mutate()
  }
  return (
    <>
      <PageHeader title={t('agents.newFrom', { template: start.title })} />
      <Editor
        draft={draft}
        check={check}
        agentId={undefined}
        trialId={trialId}
        error={problemOf(error)}
        offer={offer}
        onSave={create}
      >
        <Button size="xs" disabled={check.problems.length > 0} loading={isPending} onClick={create}>
          {t('common.create')}
        </Button>
      </Editor>
      <LeaveGuard isDirty={isDirty} loss={t('common.leaveAgent')} />
    </>
  )
}

/** Identifies the trial of an imported file. */
const NEW_TRIAL = 'new'

function useCreate({ text: yaml, format }: Draft, trialId: string, isDirty: { current: boolean }) {
  const { parent_key: parentKey } = useMe()
  const { view, try: isTrying } = useSearch({ from: '/shell/agents/new' })
  const queries = useQueryClient()
  const navigate = useNavigate()
  return useMutation({
    mutationFn: () => api.agents.create.mutate({ yaml, format }),
    onSuccess: async ({ agent_id: agentId }) => {
      isDirty.current = false
      moveTrial(trialId, agentId)
      moveStoredTests(parentKey, trialId, agentId)
      await refreshAgentLists(queries)
      const search = { ...(view && { view }), ...(isTrying && { try: true }), created: true }
      await navigate({ to: '/agents/$agentId', params: { agentId }, search, replace: true })
      showDone(t('agents.created'))
    },
  })
}
