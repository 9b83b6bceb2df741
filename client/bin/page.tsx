/** Shows the bin: the deleted agents, or the deleted uploads. */
import { Tabs } from '@mantine/core'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { PageHeader } from '../components/PageHeader.tsx'
import { t } from '../strings/language.ts'
import { BinnedAgents } from './BinnedAgents.tsx'
import { BinnedUploads } from './BinnedUploads.tsx'

export function BinPage() {
  const { tab = 'agents' } = useSearch({ from: '/shell/bin' })
  const navigate = useNavigate({ from: '/bin' })
  return (
    <>
      <PageHeader title={t('bin.title')} about={tab === 'agents' ? t('bin.about') : t('bin.aboutUploads')} />
      <Tabs
        value={tab}
        onChange={(next) => void navigate({ search: next === 'uploads' ? { tab: next } : {} })}
      >
        <Tabs.List mb="md">
          <Tabs.Tab value="agents">{t('shell.agents')}</Tabs.Tab>
          <Tabs.Tab value="uploads">{t('uploads.title')}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value={tab}>{tab === 'agents' ? <BinnedAgents /> : <BinnedUploads />}</Tabs.Panel>
      </Tabs>
    </>
  )
}
