/** Shows the Usage page. */

import { useNavigate, useSearch } from '@tanstack/react-router'
import { PageHeader } from '../components/PageHeader.tsx'
import { useMe } from '../shell/use-me.ts'
import { t } from '../strings/language.ts'
import { UsageView } from './UsageView.tsx'

export function UsagePage() {
  const search = useSearch({ from: '/shell/usage' })
  const navigate = useNavigate()
  const { is_administrator: isAdministrator } = useMe()
  return (
    <>
      <PageHeader title={t('shell.usage')} about={t('usage.about')} />
      <UsageView
        search={search}
        onSearch={(next) => void navigate({ to: '/usage', search: next })}
        isAdministrator={isAdministrator}
      />
    </>
  )
}
