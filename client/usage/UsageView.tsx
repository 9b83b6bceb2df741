/** Usage in figures, charts and tables; on its own page, and for everybody's calls in the administration. */
import { Button, Stack } from '@mantine/core'
import { lazy, Suspense } from 'react'
import { Empty, Failed, Loading } from '../components/QueryStates.tsx'
import { saveText } from '../lib/save-text.ts'
import { toCsv } from './csv.ts'
import { Figures } from './Figures.tsx'
import type { UsageSearch } from './search.ts'
import { UsagePicker } from './UsagePicker.tsx'
import { UsageTable } from './UsageTable.tsx'
import { type ShownUsage, useUsage } from './use-usage.ts'

const Charts = lazy(async () => ({ default: (await import('./Charts.tsx')).Charts }))

export interface UsageViewProps {
  readonly search: UsageSearch
  readonly onSearch: (search: UsageSearch) => void
  /** Everybody's calls can be looked at. */
  readonly isAdministrator: boolean
  /** Nothing but everybody's calls is looked at. */
  readonly isEverybody?: boolean
}

export function UsageView(props: UsageViewProps) {
  const { search } = props
  const { data, error, refetch, isPlaceholderData } = useUsage(search)
  return (
    <Stack gap="md">
      <UsagePicker {...props}>
        <Button
          variant="default"
          size="xs"
          disabled={data === undefined || data.total.requests === 0}
          onClick={() => data && saveUsage(data)}
        >
          Save as CSV
        </Button>
      </UsagePicker>
      {error !== null ? <Failed error={error} what="The usage" retry={() => void refetch()} /> : null}
      {data === undefined && error === null ? <Loading what="the usage" rows={3} height={180} /> : null}
      {data === undefined || error !== null ? null : (
        <div aria-busy={isPlaceholderData}>
          <UsageContent usage={data} />
        </div>
      )}
    </Stack>
  )
}

function UsageContent({ usage }: { readonly usage: ShownUsage }) {
  if (usage.total.requests === 0) {
    return (
      <Empty icon="usage" title="No calls on these days">
        Requests, tokens and times are here as soon as somebody has called. Choose other days, or try an
        agent.
      </Empty>
    )
  }
  return (
    <Stack gap="md">
      <Figures total={usage.total} />
      <Suspense fallback={<Loading what="the charts" rows={2} height={240} />}>
        <Charts {...usage} />
        <UsageTable {...usage} />
      </Suspense>
    </Stack>
  )
}

function saveUsage({ lines, by, days }: ShownUsage): void {
  saveText(toCsv(lines, by), `usage-by-${by}-${days.from}-${days.to}.csv`, 'text/csv')
}
