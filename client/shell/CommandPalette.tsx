/** Offers pages, agents, keys and documentation by name (Ctrl+K), and shows the keyboard shortcuts. */
import '@mantine/spotlight/styles.css'
import { Kbd, Table, Title } from '@mantine/core'
import { useDebouncedValue, useDisclosure } from '@mantine/hooks'
import { Spotlight, type SpotlightActionGroupData, useSpotlight } from '@mantine/spotlight'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { agentPageQuery, newestAgentsQuery } from '../agents/queries.ts'
import type { AgentListItem } from '../api.ts'
import { Dialog } from '../components/Dialog.tsx'
import { renderScript } from '../embed/embed-code.ts'
import { useStoredFirstRun } from '../first-run/first-run.ts'
import { t } from '../strings/language.ts'
import { Icon, type IconName } from './icons.tsx'
import { useChooseKey } from './KeySwitch.tsx'
import { groups, keysAndAdministration } from './navigation.ts'
import { paletteStore, provideShortcuts } from './palette.ts'
import { showDone } from './toast.tsx'
import { useMe } from './use-me.ts'

/** Waiting time after the last key before agents are searched, in milliseconds. */
const SEARCH_PAUSE_MS = 150

export function CommandPalette() {
  const [isHelpOpen, help] = useDisclosure(false)
  useEffect(() => provideShortcuts(help.open), [help.open])
  // The lists are fetched only when the palette opens.
  const { opened } = useSpotlight(paletteStore)
  const [query, setQuery] = useState('')
  const groups = [
    ...usePageActions(help.open),
    useAgentActions(opened, query),
    useKeyActions(),
    useDocsActions(opened, query),
  ]
  return (
    <>
      <Spotlight
        store={paletteStore}
        query={query}
        onQueryChange={setQuery}
        actions={groups.filter(({ actions }) => actions.length > 0)}
        shortcut={null}
        nothingFound={t('shell.nothingFound')}
        limit={30}
        scrollable
        maxHeight={420}
        radius="lg"
        title={t('shell.commands')}
        classNames={{ header: 'for-screen-readers' }}
        searchProps={{
          leftSection: <Icon name="search" size={16} />,
          placeholder: t('shell.palettePlaceholder'),
          'aria-label': t('shell.paletteLabel'),
        }}
      />
      <Dialog title={t('shell.shortcuts')} isOpen={isHelpOpen} onClose={help.close}>
        <Shortcuts />
      </Dialog>
    </>
  )
}

function usePageActions(openHelp: () => void): SpotlightActionGroupData[] {
  const navigate = useNavigate()
  const { is_administrator: isAdministrator, webhooks } = useMe()
  const hasWebhooks = webhooks.is_allowed
  const pages = [...groups().flatMap((group) => group.entries), ...keysAndAdministration(isAdministrator)]
  return [
    {
      group: t('shell.goTo'),
      actions: pages.map(({ to, label, icon }) => ({
        id: to,
        label,
        leftSection: <Icon name={icon} size={16} />,
        onClick: () => void navigate({ to }),
      })),
    },
    {
      group: t('shell.createAndHelp'),
      actions: [
        action('new-agent', t('shell.newAgent'), 'plus', () => void navigate({ to: '/agents/new' })),
        action(
          'new-key',
          t('shell.newKey'),
          'plus',
          () => void navigate({ to: '/keys', search: { add: true } }),
        ),
        ...(hasWebhooks
          ? [
              action(
                'new-webhook',
                t('shell.newWebhook'),
                'plus',
                () => void navigate({ to: '/webhooks', search: { add: true } }),
              ),
            ]
          : []),
        ...(isAdministrator
          ? [
              action(
                'connect-model',
                t('firstRun.connect'),
                'plus',
                () => void navigate({ to: '/providers', search: { add: '' } }),
              ),
            ]
          : []),
        action('get-started', t('shell.getStarted'), 'play', () => void navigate({ to: '/get-started' })),
        action('shortcuts', t('shell.shortcuts'), 'docs', openHelp),
        action('reference', t('shell.apiReference'), 'docs', () =>
          window.open('/docs', '_blank', 'noreferrer'),
        ),
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
    action(`${id}-code`, t('shell.copyEmbedCode', { name }), 'copy', () => void copyCode(agentKey)),
  ]
  return { group: t('shell.agents'), actions: [...agents.values()].flatMap(actionsOf) }
}

async function copyEmbedCode(agentKey: string): Promise<void> {
  await navigator.clipboard.writeText(renderScript({ origin: window.location.origin, agentKey, options: {} }))
  showDone(t('shell.embedCodeCopied'))
}

function useKeyActions(): SpotlightActionGroupData {
  const { keys } = useMe()
  const choose = useChooseKey()
  const others = keys.filter((key) => !key.is_active)
  return {
    group: t('shell.switchKey'),
    actions: others.map(({ id, name }) =>
      action(id, t('shell.switchTo', { name }), 'keys', () => choose.mutate(id)),
    ),
  }
}

interface DocumentationLink {
  readonly title: string
  readonly path: string
}

interface DocumentationPage extends DocumentationLink {
  readonly headings: readonly DocumentationLink[]
}

const documentationQuery = queryOptions({
  queryKey: ['documentation'],
  queryFn: async (): Promise<DocumentationPage[]> => {
    const index = await fetch('/docs/index.json')
    return ((await index.json()) as { pages: DocumentationPage[] }).pages
  },
  staleTime: Number.POSITIVE_INFINITY,
})

/** Offers the documentation's pages and, once the user types, their headings. */
function useDocsActions(isOpen: boolean, query: string): SpotlightActionGroupData {
  const { data: pages = [] } = useQuery({ ...documentationQuery, enabled: isOpen })
  const linkTo = ({ path, title }: DocumentationLink) =>
    action(path, title, 'docs', () => window.open(path, '_blank', 'noreferrer'))
  const headings =
    query.trim() === ''
      ? []
      : pages.flatMap((page) => page.headings.map((one) => ({ ...linkTo(one), description: page.title })))
  return { group: t('shell.documentation'), actions: [...pages.map(linkTo), ...headings] }
}

function action(id: string, label: string, icon: IconName, onClick: () => void) {
  return { id, label, leftSection: <Icon name={icon} size={16} />, onClick }
}

type Shortcut = readonly [keys: readonly string[], effect: string]

const shortcuts: readonly Shortcut[] = [
  [[t('shell.ctrlOrCommand'), 'K'], t('shell.shortcutSearch')],
  [['/'], t('shell.shortcutFocus')],
  [[t('shell.ctrlOrCommand'), 'S'], t('shell.shortcutSave')],
  [['?'], t('shell.shortcutHelp')],
  [['Esc'], t('shell.shortcutClose')],
]

const conversationShortcuts: readonly Shortcut[] = [
  [['J'], t('conversations.shortcutNext')],
  [['K'], t('conversations.shortcutPrevious')],
  [['Enter'], t('conversations.shortcutOpen')],
  [['R'], t('conversations.shortcutReply')],
  [['E'], t('conversations.shortcutClose')],
]

function Shortcuts() {
  return (
    <>
      <ShortcutTable shortcuts={shortcuts} />
      <Title order={3} size="sm" mt="md" mb={4}>
        {t('shell.conversations')}
      </Title>
      <ShortcutTable shortcuts={conversationShortcuts} />
    </>
  )
}

function ShortcutTable({ shortcuts: listed }: { readonly shortcuts: readonly Shortcut[] }) {
  return (
    <Table>
      <Table.Tbody>
        {listed.map(([keys, effect]) => (
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
