/** Lists agent keys, which are safe in web pages, and lets users reveal, copy and rotate them. */
import { Button, Code, Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { agentsQuery } from '../agents/queries.ts'
import type { AgentListItem } from '../api.ts'
import { CopyButton } from '../components/CopyButton.tsx'
import { type Column, DataTable } from '../components/DataTable.tsx'
import { Dialog } from '../components/Dialog.tsx'
import { Empty, Failed, Loading } from '../components/QueryStates.tsx'
import { TextLink } from '../components/text.tsx'
import { RotateKey, rotateAgentKey } from './NewKey.tsx'

export function AgentKeys() {
  const { data, error, refetch } = useQuery(agentsQuery)
  const { agent: wanted } = useSearch({ from: '/shell/keys' })
  const [shown, setShown] = useState<ReadonlySet<string>>(new Set())
  const [rotated, setRotated] = useState<AgentListItem>()
  if (error !== null && data === undefined)
    return <Failed error={error} what="The agents" retry={() => void refetch()} />
  if (data === undefined) return <Loading what="agent keys" />
  if (data.length === 0) {
    return (
      <Empty icon="keys" title="No agent keys">
        Each agent gets its own key when you create it.
      </Empty>
    )
  }
  const columns: Column<AgentListItem>[] = [
    {
      name: 'Agent',
      render: ({ id, name }) => (
        <TextLink to="/agents/$agentId" params={{ agentId: id }} size="sm" fw={500}>
          {name}
        </TextLink>
      ),
    },
    { name: 'Key', render: ({ id, agent_key: key }) => <KeyText text={key} isShown={shown.has(id)} /> },
    {
      name: 'Actions',
      isBare: true,
      render: (agent) => (
        <AgentKeyActions
          agent={agent}
          isShown={shown.has(agent.id)}
          onShow={() => setShown(toggled(shown, agent.id))}
          onRotate={() => setRotated(agent)}
        />
      ),
    },
  ]
  const found = data.filter(({ id }) => id === wanted)
  return (
    <>
      {found.length === 0 ? null : <AllKeysLink />}
      <DataTable
        label="Agent keys"
        columns={columns}
        rows={found.length === 0 ? data : found}
        keyOf={({ id }) => id}
      />
      <Dialog
        title={`Rotate the key of ${rotated?.name}`}
        isOpen={rotated !== undefined}
        onClose={() => setRotated(undefined)}
      >
        <RotateKey
          rotate={(seconds) => rotateAgentKey(rotated?.id ?? '', seconds)}
          isShownOnce={false}
          onClose={() => setRotated(undefined)}
        />
      </Dialog>
    </>
  )
}

function AllKeysLink() {
  return (
    <TextLink to="/keys" search={{ tab: 'agent' }} size="sm" display="inline-block" mb="sm">
      Show all agent keys
    </TextLink>
  )
}

interface AgentKeyActionsProps {
  readonly agent: AgentListItem
  readonly isShown: boolean
  readonly onShow: () => void
  readonly onRotate: () => void
}

function AgentKeyActions({ agent, isShown, onShow, onRotate }: AgentKeyActionsProps) {
  const { name, agent_key: key } = agent
  return (
    <Group gap={6} justify="flex-end" wrap="nowrap">
      <Button
        variant="default"
        size="xs"
        aria-label={`${isShown ? 'Hide' : 'Reveal'} the key of ${name}`}
        onClick={onShow}
      >
        {isShown ? 'Hide' : 'Reveal'}
      </Button>
      <CopyButton text={key} what={`the key of ${name}`} />
      <Button variant="default" size="xs" aria-label={`Rotate the key of ${name}`} onClick={onRotate}>
        Rotate…
      </Button>
    </Group>
  )
}

function KeyText({ text, isShown }: { readonly text: string; readonly isShown: boolean }) {
  return <Code>{isShown ? text : `${text.slice(0, 4)}…${text.slice(-4)}`}</Code>
}

function toggled(set: ReadonlySet<string>, value: string): ReadonlySet<string> {
  return set.has(value) ? new Set([...set].filter((one) => one !== value)) : new Set([...set, value])
}
