/** Creates an agent: shows the templates, then opens the chosen one in the editor. */
import { Anchor, Breadcrumbs, Button, SimpleGrid, Text } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useRef } from 'react'
import { api } from '../api.ts'
import { LeaveGuard } from '../components/Dialog.tsx'
import { PageHeader } from '../components/PageHeader.tsx'
import { problemOf } from '../failure.ts'
import { showDone } from '../shell/toast.ts'
import { Editor } from './edit/Editor.tsx'
import { useCheck, useDraft } from './edit/use-editor.ts'
import { type Template, templates } from './templates.ts'

export function NewAgentPage() {
  const { template: id } = useSearch({ from: '/shell/agents/new' })
  const template = templates.find((one) => one.id === id)
  return (
    <>
      <Breadcrumbs mb={4}>
        <Anchor component={Link} to="/agents" size="sm">
          Agents
        </Anchor>
      </Breadcrumbs>
      {template === undefined ? <ChooseTemplate /> : <NewAgent key={template.id} template={template} />}
    </>
  )
}

function ChooseTemplate() {
  return (
    <>
      <PageHeader
        title="New agent"
        about="Choose a template to start from. You can change everything later."
      />
      <SimpleGrid cols={{ base: 1, xs: 2, lg: 3 }}>
        {templates.map(({ id, title, about }) => (
          <Link key={id} to="/agents/new" search={{ template: id }} className="panel template-card">
            <Text fw={500}>{title}</Text>
            <Text size="sm" c="dimmed">
              {about}
            </Text>
          </Link>
        ))}
      </SimpleGrid>
    </>
  )
}

function NewAgent({ template }: { readonly template: Template }) {
  const draft = useDraft({ text: template.yaml, format: 'yaml', version: 0 })
  const check = useCheck(draft.text, draft.format)
  const isDirty = useRef(false)
  isDirty.current = draft.isDirty
  const { mutate, isPending, error } = useCreate(draft.text, isDirty)
  const create = () => {
    if (check.problem === null) mutate()
  }
  return (
    <>
      <PageHeader title={`New agent: ${template.title}`} />
      <Editor draft={draft} check={check} agentId={undefined} error={problemOf(error)} onSave={create}>
        <Button size="xs" disabled={check.problem !== null} loading={isPending} onClick={create}>
          Create
        </Button>
      </Editor>
      <LeaveGuard isDirty={isDirty} what="this agent" />
    </>
  )
}

function useCreate(yaml: string, isDirty: { current: boolean }) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  return useMutation({
    mutationFn: () => api.agents.create.mutate({ yaml }),
    onSuccess: async ({ agent_id: agentId }) => {
      isDirty.current = false
      await queries.invalidateQueries({ queryKey: ['agents'], exact: true })
      await navigate({ to: '/agents/$agentId', params: { agentId }, replace: true })
      showDone('Agent created')
    },
  })
}
