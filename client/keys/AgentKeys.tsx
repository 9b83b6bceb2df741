/** Lists agent keys, which are safe in web pages, and lets users reveal, copy and rotate them. */
import { Button, Code, Group } from '@mantine/core'
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { agentPageQuery } from '../agents/queries.ts'
import type { AgentListItem } from '../api.ts'
import { CopyButton } from '../components/CopyButton.tsx'
import type { Column } from '../components/DataTable.tsx'
import { Dialog } from '../components/Dialog.tsx'
import { ListView } from '../components/list/ListView.tsx'
import { Empty } from '../components/QueryStates.tsx'
import { Ago, TextLink } from '../components/text.tsx'
import { changeSearch } from '../search.ts'
import { t } from '../strings/language.ts'
import { RotateKey, rotateAgentKey } from './NewKey.tsx'

export function AgentKeys() {
  const search = useSearch({ from: '/shell/keys' })
  const { agent, tab: _, ...list } = search
  const sort = list.sort === 'last_used' ? undefined : list.sort
  const navigate = useNavigate({ from: '/keys' })
  const [shown, setShown] = useState<ReadonlySet<string>>(new Set())
  const [rotated, setRotated] = useState<AgentListItem>()
  const queries = useQueryClient()
  const rotate = async (overlapSeconds: number) => {
    const made = await rotateAgentKey(rotated?.id ?? '', overlapSeconds)
    // Pages that are not open must not show the previous key when they open again.
    queries.removeQueries({ queryKey: ['agents', 'list'], type: 'inactive' })
    return made
  }
  const change = (changes: Readonly<Record<string, string | undefined>>) =>
    void navigate({ search: (now) => changeSearch(now, changes), replace: 'q' in changes })
  // An agent's id is unique, so searching for it finds only this agent.
  const query = useQuery({
    ...agentPageQuery(agent === undefined ? { ...list, sort } : { q: agent }),
    placeholderData: keepPreviousData,
  })
  const actions: Column<AgentListItem> = {
    name: 'common.actions',
    isBare: true,
    render: (one) => (
      <AgentKeyActions
        agent={one}
        isShown={shown.has(one.id)}
        onShow={() => setShown(toggled(shown, one.id))}
        onRotate={() => setRotated(one)}
      />
    ),
  }
  const key: Column<AgentListItem> = {
    name: 'keys.key',
    render: ({ id, agent_key: text }) => <KeyText text={text} isShown={shown.has(id)} />,
  }
  return (
    <>
      <ListView
        label={t('keys.agentKeys')}
        items="agentKeys"
        columns={[nameColumn, key, createdColumn, actions]}
        query={query}
        idOf={({ id }) => id}
        nameOf={({ name }) => name}
        search={{ ...list, sort, ...(agent === undefined ? {} : { agent }) }}
        onSearch={change}
        sorting={{ sort: 'created', order: 'desc' }}
        placeholder={t('keys.searchAgent')}
        toolbar={
          agent === undefined ? null : (
            <TextLink to="/keys" search={{ tab: 'agent' }} size="sm">
              {t('keys.showAllAgentKeys')}
            </TextLink>
          )
        }
        empty={
          <Empty icon="keys" title={t('keys.noAgentKeys')}>
            {t('keys.noAgentKeysHelp')}
          </Empty>
        }
      />
      <Dialog
        title={t('keys.rotateKeyOf', { name: rotated?.name ?? '' })}
        isOpen={rotated !== undefined}
        onClose={() => setRotated(undefined)}
      >
        <RotateKey rotate={rotate} isShownOnce={false} onClose={() => setRotated(undefined)} />
      </Dialog>
    </>
  )
}

const nameColumn: Column<AgentListItem> = {
  name: 'common.agent',
  isMain: true,
  sort: 'name',
  render: ({ id, name }) => (
    <TextLink to="/agents/$agentId" params={{ agentId: id }} size="sm" fw={500}>
      {name}
    </TextLink>
  ),
}

const createdColumn: Column<AgentListItem> = {
  name: 'keys.created',
  sort: 'created',
  firstOrder: 'desc',
  render: ({ created_at: at }) => <Ago seconds={at} />,
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
        aria-label={isShown ? t('keys.hideKeyOf', { name }) : t('keys.revealKeyOf', { name })}
        onClick={onShow}
      >
        {isShown ? t('keys.hide') : t('keys.reveal')}
      </Button>
      <CopyButton text={key} what={t('keys.theKeyOf', { name })} />
      <Button variant="default" size="xs" aria-label={t('keys.rotateKeyOf', { name })} onClick={onRotate}>
        {t('keys.rotateMenu')}
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
