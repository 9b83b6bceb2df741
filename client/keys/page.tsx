/** Shows parent keys, which servers use, and agent keys, which web pages use. */
import { Tabs } from '@mantine/core'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { PageHeader } from '../components/PageHeader.tsx'
import { keyTabs } from '../search.ts'
import { t } from '../strings/language.ts'
import { AgentKeys } from './AgentKeys.tsx'
import { ParentKeys } from './ParentKeys.tsx'

export function KeysPage() {
  const { tab = 'parent' } = useSearch({ from: '/shell/keys' })
  const navigate = useNavigate()
  const choose = (value: string | null) =>
    navigate({ to: '/keys', search: { tab: keyTabs.find((one) => one === value && one !== 'parent') } })
  return (
    <>
      <PageHeader title={t('keys.title')} about={t('keys.about')} />
      <Tabs value={tab} onChange={(value) => void choose(value)} keepMounted={false}>
        <Tabs.List mb="md">
          <Tabs.Tab value="parent">{t('keys.parentKeys')}</Tabs.Tab>
          <Tabs.Tab value="agent">{t('keys.agentKeys')}</Tabs.Tab>
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
