/** Shows the administration page, with tabs for users, keys, usage and the audit log. */
import { t } from '../strings/language.ts'
import './admin.css'
import { Tabs } from '@mantine/core'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { PageHeader } from '../components/PageHeader.tsx'
import { Empty } from '../components/QueryStates.tsx'
import { type AdminSearch, adminTabs, changeSearch } from '../search.ts'
import { useMe } from '../shell/use-me.ts'
import { UsageView } from '../usage/UsageView.tsx'
import { Audit } from './Audit.tsx'
import type { TabProps } from './Budget.tsx'
import { Keys } from './Keys.tsx'
import { Users } from './Users.tsx'

const tabNames = {
  users: 'admin.users',
  keys: 'keys.title',
  usage: 'shell.usage',
  audit: 'admin.auditLog',
} as const

export function AdminPage() {
  const { is_administrator: isAdministrator } = useMe()
  const search = useSearch({ from: '/shell/admin' })
  const navigate = useNavigate({ from: '/admin' })
  const change: TabProps['change'] = (changes) =>
    void navigate({ search: (now) => changeSearch(now, changes), replace: 'q' in changes })
  const go = (next: AdminSearch) => void navigate({ to: '/admin', search: next })
  const { tab = 'users' } = search
  if (!isAdministrator) return <NotYours />
  return (
    <>
      <PageHeader title={t('shell.administration')} />
      <Tabs
        value={tab}
        onChange={(value) => go({ tab: adminTabs.find((one) => one === value) })}
        keepMounted={false}
      >
        <Tabs.List mb="md">
          {adminTabs.map((one) => (
            <Tabs.Tab key={one} value={one}>
              {t(tabNames[one])}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {adminTabs.map((one) => (
          <Tabs.Panel key={one} value={one}>
            <TabContent tab={one} search={search} change={change} go={go} />
          </Tabs.Panel>
        ))}
      </Tabs>
    </>
  )
}

function TabContent({ tab, ...props }: TabProps & { readonly tab: (typeof adminTabs)[number] }) {
  const { search, go } = props
  switch (tab) {
    case 'users':
      return <Users {...props} />
    case 'keys':
      return <Keys {...props} />
    case 'usage': {
      const usage = { ...search, whose: 'all' } as const
      return (
        <UsageView
          search={usage}
          onSearch={(next) => go({ ...next, tab: 'usage', whose: undefined })}
          isAllKeys
          isAdministrator
        />
      )
    }
    case 'audit':
      return <Audit {...props} />
  }
}

function NotYours() {
  return (
    <>
      <PageHeader title={t('shell.administration')} />
      <Empty icon="admin" title={t('admin.onlyAdministrators')}>
        {t('admin.onlyAdministratorsHelp')}
      </Empty>
    </>
  )
}
