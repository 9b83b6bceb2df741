/** Shows usage as totals, charts and tables, for one key or for all keys. */
import { Button, SimpleGrid, Stack, Text } from '@mantine/core'
import { lazy, Suspense } from 'react'
import { type Column, DataTable } from '../components/DataTable.tsx'
import { Empty, Failed, Loading } from '../components/QueryStates.tsx'
import { renderCount, renderMilliseconds, renderNumber } from '../format.ts'
import type { UsageSearch } from '../search.ts'
import { saveText, toCsv } from './csv.ts'
import { UsagePicker } from './UsagePicker.tsx'
import { type Line, type ShownUsage, type Sums, useUsage } from './use-usage.ts'

const Charts = lazy(async () => ({ default: (await import('./Charts.tsx')).Charts }))

interface UsageViewProps {
  readonly search: UsageSearch
  readonly onSearch: (search: UsageSearch) => void
  /** Lets the user view the calls of all keys. */
  readonly isAdministrator: boolean
  /** Hides the choice between one key and all keys. */
  readonly isAllKeys?: boolean
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
          Download CSV
        </Button>
      </UsagePicker>
      {error !== null ? <Failed error={error} what="usage" retry={() => void refetch()} /> : null}
      {data === undefined && error === null ? <Loading what="usage" rows={3} height={180} /> : null}
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
      <Empty icon="usage" title="No calls in this period">
        Requests, tokens and latency appear here after the first call. Choose another period, or try an agent.
      </Empty>
    )
  }
  return (
    <Stack gap="md">
      <Figures total={usage.total} />
      <Suspense fallback={<Loading what="charts" rows={2} height={240} />}>
        <Charts {...usage} />
        <UsageTable {...usage} />
      </Suspense>
    </Stack>
  )
}

function saveUsage({ lines, by, days }: ShownUsage): void {
  saveText(toCsv(lines, by), `usage-by-${by}-${days.from}-${days.to}.csv`, 'text/csv')
}

const percent = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 })

function Figures({ total }: { readonly total: Sums }) {
  const { requests, errors, latency_ms: latency, first_byte_ms: first } = total
  const failed =
    errors === 0 ? 'none failed' : `${renderNumber(errors)} failed (${percent.format(errors / requests)})`
  const tokens = `${renderNumber(total.prompt_tokens)} prompt, ${renderNumber(total.completion_tokens)} completion`
  const estimated = total.estimated_requests
  return (
    <SimpleGrid cols={{ base: 2, md: 4 }} spacing="md" component="section" aria-label="Totals">
      <Figure name="Requests" value={renderNumber(requests)} about={failed} />
      <Figure
        name="Tokens"
        value={renderNumber(total.total_tokens)}
        about={estimated === 0 ? tokens : `${tokens}; ${renderCount(estimated, 'call')} estimated`}
      />
      <Times name="Latency" times={latency} />
      <Times name="Time to first token" times={first} />
    </SimpleGrid>
  )
}

function Times({ name, times }: { readonly name: string; readonly times: Sums['latency_ms'] }) {
  if (times === null) return <Figure name={name} value="–" about="No data" />
  const about = `p95 ${renderMilliseconds(times.p95)}, p99 ${renderMilliseconds(times.p99)}`
  return <Figure name={name} value={renderMilliseconds(times.p50)} about={about} />
}

function Figure({ name, value, about }: { name: string; value: string; about: string }) {
  return (
    <Stack className="panel" gap={2} p="md">
      <Text size="sm" c="dimmed">
        {name}
      </Text>
      <Text fz={24} fw={600} lh={1.25} className="figure-value">
        {value}
      </Text>
      <Text size="xs" c="dimmed">
        {about}
      </Text>
    </Stack>
  )
}

const heads = { day: 'Day', agent: 'Agent', model: 'Model', key: 'Key' } as const

const figures: readonly Column<Line>[] = [
  { name: 'Requests', isNumber: true, render: ({ requests }) => renderNumber(requests) },
  { name: 'Errors', isNumber: true, render: ({ errors }) => renderNumber(errors) },
  { name: 'Prompt tokens', isNumber: true, render: ({ prompt_tokens: tokens }) => renderNumber(tokens) },
  {
    name: 'Completion tokens',
    isNumber: true,
    render: ({ completion_tokens: tokens }) => renderNumber(tokens),
  },
  { name: 'Latency p50', isNumber: true, render: ({ latency_ms: times }) => renderTime(times?.p50) },
  { name: 'p95', isNumber: true, render: ({ latency_ms: times }) => renderTime(times?.p95) },
  { name: 'p99', isNumber: true, render: ({ latency_ms: times }) => renderTime(times?.p99) },
  { name: 'First token p50', isNumber: true, render: ({ first_byte_ms: times }) => renderTime(times?.p50) },
  { name: 'First token p95', isNumber: true, render: ({ first_byte_ms: times }) => renderTime(times?.p95) },
]

function UsageTable({ by, lines, total }: Pick<ShownUsage, 'by' | 'lines' | 'total'>) {
  const name: Column<Line> = { name: heads[by], render: (line) => line.name }
  // Shows the newest day first.
  const rows = by === 'day' ? lines.toReversed() : lines
  return (
    <DataTable
      label={`Usage by ${by}`}
      columns={[name, ...figures]}
      rows={rows}
      keyOf={({ id }) => id}
      onPhone="scroll"
      total={total}
    />
  )
}

function renderTime(milliseconds: number | undefined): string {
  return milliseconds === undefined ? '–' : renderMilliseconds(milliseconds)
}
