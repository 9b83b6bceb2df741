/** Parent keys, with which servers call, and agent keys, which stand in web pages. */
import { Tabs } from '@mantine/core'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { PageHeader } from '../components/PageHeader.tsx'
import { keyTabs } from '../search.ts'
import { AgentKeys } from './AgentKeys.tsx'
import { ParentKeys } from './ParentKeys.tsx'

export function KeysPage() {
  const { tab = 'parent' } = useSearch({ from: '/shell/keys' })
  const navigate = useNavigate()
  const choose = (value: string | null) =>
    navigate({ to: '/keys', search: { tab: keyTabs.find((one) => one === value && one !== 'parent') } })
  return (
    <>
      <PageHeader
        title="Keys"
        about="A parent key owns agents, files and uploads, and stays on your servers. An agent key reaches one agent, and may stand in a web page."
      />
      <Tabs value={tab} onChange={(value) => void choose(value)} keepMounted={false}>
        <Tabs.List mb="md">
          <Tabs.Tab value="parent">Parent keys</Tabs.Tab>
          <Tabs.Tab value="agent">Agent keys</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="parent">
          <ParentKeys />
        </Tabs.Panel>
        <Tabs.Panel value="agent">
          <AgentKeys />
        </Tabs.Panel>
      </Tabs>
    </>
  )
}
