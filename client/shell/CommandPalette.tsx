/** Offers pages, agents, keys and documentation by name (Ctrl+K), and shows the keyboard shortcuts. */
import '@mantine/spotlight/styles.css'
import { Kbd, Table } from '@mantine/core'
import { useDebouncedValue, useDisclosure, useHotkeys } from '@mantine/hooks'
import { Spotlight, type SpotlightActionGroupData, useSpotlight } from '@mantine/spotlight'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { agentPageQuery, newestAgentsQuery } from '../agents/queries.ts'
import type { AgentListItem } from '../api.ts'
import { Dialog } from '../components/Dialog.tsx'
import { renderScript } from '../embed/appearance.ts'
import { useStoredFirstRun } from '../first-run/first-run.ts'
import { Icon, type IconName } from './icons.tsx'
import { useChooseKey } from './KeySwitch.tsx'
import { entries, keysAndAdministration } from './navigation.ts'
import { palette, paletteStore } from './palette.ts'
import { showDone } from './toast.tsx'
import { useMe } from './use-me.ts'

/** Waiting time after the last key before agents are searched, in milliseconds. */
const SEARCH_PAUSE_MS = 150

export function CommandPalette() {
  const [isHelpOpen, help] = useDisclosure(false)
  useHotkeys([
    ['/', focusSearch],
    ['shift+?', help.open],
    ['?', help.open],
  ])
  // The lists are fetched only when the palette opens.
  const { opened } = useSpotlight(paletteStore)
  const [query, setQuery] = useState('')
  const groups = [
    ...usePageActions(help.open),
    useAgentActions(opened, query),
    useKeyActions(),
    useDocsActions(opened),
  ]
  return (
    <>
      <Spotlight
        store={paletteStore}
        query={query}
        onQueryChange={setQuery}
        actions={groups.filter(({ actions }) => actions.length > 0)}
        shortcut="mod + K"
        tagsToIgnore={[]}
        triggerOnContentEditable
        nothingFound="Nothing found"
        limit={30}
        scrollable
        maxHeight={420}
        radius="lg"
        title="Commands"
        classNames={{ header: 'for-screen-readers' }}
        searchProps={{
          leftSection: <Icon name="search" size={16} />,
          placeholder: 'Go to a page, an agent or the documentation',
          'aria-label': 'Search for a command',
        }}
      />
      <Dialog title="Keyboard shortcuts" isOpen={isHelpOpen} onClose={help.close}>
        <Shortcuts />
      </Dialog>
    </>
  )
}

/** Focuses the page's search field; opens the palette on pages without one. */
function focusSearch(): void {
  const field = document.querySelector<HTMLInputElement>('main [data-search] input, main input[data-search]')
  if (field === null) palette.open()
  else field.focus()
}

function usePageActions(openHelp: () => void): SpotlightActionGroupData[] {
  const navigate = useNavigate()
  const { is_administrator: isAdministrator } = useMe()
  const pages = [...entries, ...keysAndAdministration(isAdministrator)]
  return [
    {
      group: 'Go to',
      actions: pages.map(({ to, label, icon }) => ({
        id: to,
        label,
        leftSection: <Icon name={icon} size={16} />,
        onClick: () => void navigate({ to }),
      })),
    },
    {
      group: 'Create and help',
      actions: [
        action('new-agent', 'New agent', 'plus', () => void navigate({ to: '/agents/new' })),
        action('new-key', 'New key', 'plus', () => void navigate({ to: '/keys' })),
        action('shortcuts', 'Keyboard shortcuts', 'docs', openHelp),
        action('reference', 'API reference', 'docs', () => window.open('/docs', '_blank', 'noreferrer')),
      ],
    },
  ]
}

/** Offers the newest agents, and those that the server finds by the query. */
function useAgentActions(isOpen: boolean, query: string): SpotlightActionGroupData {
  const navigate = useNavigate()
  const [q] = useDebouncedValue(query.trim().slice(0, 200), SEARCH_PAUSE_MS)
  const newest = useQuery({ ...newestAgentsQuery, enabled: isOpen })
  const found = useQuery({ ...agentPageQuery({ q }), enabled: isOpen && q !== '' })
  const listed = [...(newest.data?.data ?? []), ...(found.data?.data ?? [])]
  const agents = new Map(listed.map((agent) => [agent.id, agent]))
  const [, changeFirstRun] = useStoredFirstRun()
  const copyCode = async (agentKey: string) => {
    await copyEmbedCode(agentKey)
    changeFirstRun({ isEmbedded: true })
  }
  const actionsOf = ({ id, name, agent_key: agentKey }: AgentListItem) => [
    action(id, name, 'agents', () => void navigate({ to: '/agents/$agentId', params: { agentId: id } })),
    action(`${id}-code`, `Copy embed code: ${name}`, 'copy', () => void copyCode(agentKey)),
  ]
  return { group: 'Agents', actions: [...agents.values()].flatMap(actionsOf) }
}

async function copyEmbedCode(agentKey: string): Promise<void> {
  await navigator.clipboard.writeText(renderScript({ origin: window.location.origin, agentKey, options: {} }))
  showDone('Embed code copied')
}

function useKeyActions(): SpotlightActionGroupData {
  const { keys } = useMe()
  const choose = useChooseKey()
  const others = keys.filter((key) => !key.is_active)
  return {
    group: 'Switch key',
    actions: others.map(({ id, name }) => action(id, `Switch to ${name}`, 'keys', () => choose.mutate(id))),
  }
}

interface DocumentationPage {
  readonly title: string
  readonly path: string
  readonly description: string
}

const documentationQuery = queryOptions({
  queryKey: ['documentation'],
  queryFn: async (): Promise<DocumentationPage[]> => {
    const index = await (await fetch('/llms.txt')).text()
    return Array.from(
      index.matchAll(/^- \[(.+?)\]\((\/docs\/\S+)\)(?:: (.*))?$/gm),
      ([, title = '', path = '', description = '']) => ({ title, path, description }),
    )
  },
  staleTime: Number.POSITIVE_INFINITY,
})

function useDocsActions(isOpen: boolean): SpotlightActionGroupData {
  const { data: pages = [] } = useQuery({ ...documentationQuery, enabled: isOpen })
  return {
    group: 'Documentation',
    actions: pages.map(({ title, path, description }) => ({
      ...action(path, title, 'docs', () => window.open(path, '_blank', 'noreferrer')),
      keywords: description,
    })),
  }
}

function action(id: string, label: string, icon: IconName, onClick: () => void) {
  return { id, label, leftSection: <Icon name={icon} size={16} />, onClick }
}

const shortcuts: readonly (readonly [keys: readonly string[], effect: string])[] = [
  [['Ctrl or ⌘', 'K'], 'Search for pages, agents and commands'],
  [['/'], 'Focus the search field'],
  [['Ctrl or ⌘', 'S'], 'Save the agent'],
  [['?'], 'Show the keyboard shortcuts'],
  [['Esc'], 'Close a dialog or a menu'],
]

function Shortcuts() {
  return (
    <Table>
      <Table.Tbody>
        {shortcuts.map(([keys, effect]) => (
          <Table.Tr key={effect}>
            <Table.Td w={160}>
              {keys.map((key, index) => (
                <span key={key}>
                  {index === 0 ? null : ' + '}
                  <Kbd>{key}</Kbd>
                </span>
              ))}
            </Table.Td>
            <Table.Td>{effect}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  )
}
