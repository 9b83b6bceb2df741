/** Shows usage as totals, charts and tables, for one key or for all keys. */

import { Anchor, Button, SimpleGrid, Stack, Text } from '@mantine/core'
import { lazy, Suspense } from 'react'
import { type Column, DataTable } from '../components/DataTable.tsx'
import { Empty, Failed, Loading } from '../components/QueryStates.tsx'
import { saveText } from '../components/save-text.ts'
import { renderMilliseconds, renderNumber, renderUsd } from '../format.ts'
import type { UsageSearch } from '../search.ts'
import { locale, t } from '../strings/language.ts'
import { CallList, exportAddress } from './CallList.tsx'
import { toCsv } from './csv.ts'
import { UsagePicker } from './UsagePicker.tsx'
import { countDays, type Line, type ShownUsage, type Sums, useUsage } from './use-usage.ts'

const Charts = lazy(async () => ({ default: (await import('./Charts.tsx')).Charts }))

interface UsageViewProps {
  readonly search: UsageSearch
  readonly onSearch: (search: UsageSearch) => void
  /** Whether the user may view the calls of all keys. */
  readonly isAdministrator: boolean
  /** Hides the choice between one key and all keys. */
  readonly isAllKeys?: boolean
}

export function UsageView(props: UsageViewProps) {
  // A cursor is valid only for the filters with which it was returned.
  const onSearch = (next: UsageSearch) => props.onSearch({ ...next, after: undefined })
  if (props.search.view !== 'calls') return <UsageSums {...props} onSearch={onSearch} />
  return (
    <Stack gap="md">
      <UsagePicker {...props} onSearch={onSearch}>
        <Button
          component="a"
          variant="default"
          size="xs"
          href={exportAddress(props.search)}
          download="calls.csv"
        >
          {t('usage.downloadCsv')}
        </Button>
      </UsagePicker>
      <CallList search={props.search} onSearch={props.onSearch} />
    </Stack>
  )
}

function UsageSums(props: UsageViewProps) {
  const { search, onSearch } = props
  const { data, error, refetch, isPlaceholderData } = useUsage(search)
  const showCalls = ({ narrowed }: Line) => onSearch({ ...search, ...narrowed, view: 'calls' })
  return (
    <Stack gap="md">
      <UsagePicker {...props}>
        <Button
          variant="default"
          size="xs"
          disabled={data === undefined || data.total.requests === 0}
          onClick={() => data && saveUsage(data)}
        >
          {t('usage.downloadCsv')}
        </Button>
      </UsagePicker>
      {error !== null ? <Failed error={error} what="usage" retry={() => void refetch()} /> : null}
      {data === undefined && error === null ? <Loading what="usage" rows={3} height={180} /> : null}
      {data === undefined || error !== null ? null : (
        <div aria-busy={isPlaceholderData}>
          <UsageContent usage={data} onPick={showCalls} />
        </div>
      )}
    </Stack>
  )
}

interface UsageContentProps {
  readonly usage: ShownUsage
  /** Lists the calls whose sums the line contains. */
  readonly onPick: (line: Line) => void
}

function UsageContent({ usage, onPick }: UsageContentProps) {
  if (usage.total.requests === 0) {
    return (
      <Empty icon="usage" title={t('usage.noCalls')}>
        {t(usage.keptDays === undefined ? 'usage.noSumsHelp' : 'usage.noCallsHelp')}
      </Empty>
    )
  }
  return (
    <Stack gap="md">
      {usage.keptDays === undefined ? null : (
        <Text size="sm" c="dimmed" role="note">
          {t('usage.fromCalls', { days: usage.keptDays })}
        </Text>
      )}
      <Figures {...usage} />
      <Suspense fallback={<Loading what="charts" rows={2} height={240} />}>
        <Charts {...usage} onPick={onPick} />
        <UsageTable {...usage} onPick={onPick} />
      </Suspense>
    </Stack>
  )
}

function saveUsage({ lines, by, days }: ShownUsage): void {
  saveText(toCsv(lines, by), `usage-by-${by}-${days.from}-${days.to}.csv`, 'text/csv')
}

const percent = new Intl.NumberFormat(locale(), { style: 'percent', maximumFractionDigits: 1 })

function Figures({ total, previous, days }: Pick<ShownUsage, 'total' | 'previous' | 'days'>) {
  const { requests, errors, latency_ms: latency, first_byte_ms: first } = total
  const failed =
    errors === 0
      ? t('usage.noneFailed')
      : t('usage.someFailed', { number: errors, share: percent.format(errors / requests) })
  const tokens = t('usage.tokensSplit', { prompt: total.prompt_tokens, completion: total.completion_tokens })
  const estimated = total.estimated_requests
  const compare = (now: number | undefined, before: number | undefined) =>
    renderChange(now, before, countDays(days))
  return (
    <SimpleGrid
      cols={{ base: 2, md: 3, lg: 5 }}
      spacing="md"
      component="section"
      aria-label={t('usage.totals')}
    >
      <Figure
        name={t('usage.requests')}
        value={renderNumber(requests)}
        about={failed}
        change={compare(requests, previous.requests)}
      />
      <Figure
        name={t('usage.cost')}
        value={isCostUnknown(total) ? '–' : renderUsd(Number(total.cost))}
        about={describeCost(total)}
        change={compare(Number(total.cost), Number(previous.cost))}
      />
      <Figure
        name={t('usage.tokens')}
        value={renderNumber(total.total_tokens)}
        about={
          estimated === 0
            ? tokens
            : t('usage.tokensEstimated', { tokens, calls: t('usage.estimatedCalls', { count: estimated }) })
        }
        change={compare(total.total_tokens, previous.total_tokens)}
      />
      <Times
        name={t('usage.latency')}
        times={latency}
        change={compare(latency?.p50, previous.latency_ms?.p50)}
      />
      <Times
        name={t('usage.firstToken')}
        times={first}
        change={compare(first?.p50, previous.first_byte_ms?.p50)}
      />
    </SimpleGrid>
  )
}

/** Returns whether no model of the calls has a price. */
function isCostUnknown({ cost, requests, unpriced_requests: unpriced }: Sums): boolean {
  return Number(cost) === 0 && unpriced > 0 && unpriced === requests
}

function describeCost(total: Sums): string {
  const { cost, requests, unpriced_requests: unpriced } = total
  if (isCostUnknown(total)) return t('usage.costUnknown')
  const perCall = t('usage.perCall', { amount: renderUsd(Number(cost) / (requests - unpriced || 1)) })
  if (unpriced === 0) return perCall
  return t('usage.tokensEstimated', { tokens: perCall, calls: t('usage.unpricedCalls', { count: unpriced }) })
}

const signed = new Intl.NumberFormat(locale(), {
  style: 'percent',
  maximumFractionDigits: 0,
  signDisplay: 'exceptZero',
})

/** Renders the change of a figure since the previous period, or that there is nothing to compare it with. */
function renderChange(now: number | undefined, before: number | undefined, days: number): string {
  if (now === undefined || before === undefined || before === 0) return t('usage.noPrevious', { count: days })
  return t('usage.compared', { change: signed.format((now - before) / before), count: days })
}

interface TimesProps {
  readonly name: string
  readonly times: Sums['latency_ms']
  readonly change: string
}

function Times({ name, times, change }: TimesProps) {
  if (times === null) return <Figure name={name} value="–" about={t('usage.noTimes')} />
  const [p95, p99] = [times.p95, times.p99].map((time) => renderMilliseconds(time).replaceAll(' ', '\u00a0'))
  const about = `p95\u00a0${p95}, p99\u00a0${p99}`
  return <Figure name={name} value={renderMilliseconds(times.p50)} about={about} change={change} />
}

interface FigureProps {
  readonly name: string
  readonly value: string
  readonly about: string
  readonly change?: string
}

function Figure({ name, value, about, change }: FigureProps) {
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
      {change === undefined ? null : (
        <Text size="xs" c="dimmed">
          {change}
        </Text>
      )}
    </Stack>
  )
}

const heads = { day: 'usage.day', agent: 'usage.agent', model: 'usage.model', key: 'usage.key' } as const

const labels = {
  day: 'usage.usageByDay',
  agent: 'usage.usageByAgent',
  model: 'usage.usageByModel',
  key: 'usage.usageByKey',
} as const

const figures: readonly Column<Line>[] = [
  { name: 'usage.requests', isNumber: true, render: ({ requests }) => renderNumber(requests) },
  { name: 'usage.errors', isNumber: true, render: ({ errors }) => renderNumber(errors) },
  { name: 'usage.promptTokens', isNumber: true, render: ({ prompt_tokens: tokens }) => renderNumber(tokens) },
  {
    name: 'usage.completionTokens',
    isNumber: true,
    render: ({ completion_tokens: tokens }) => renderNumber(tokens),
  },
  { name: 'usage.cost', isNumber: true, render: (line) => <Cost line={line} /> },
  { name: 'usage.latencyP50', isNumber: true, render: ({ latency_ms: times }) => renderTime(times?.p50) },
  { name: 'usage.p95', isNumber: true, render: ({ latency_ms: times }) => renderTime(times?.p95) },
  { name: 'usage.p99', isNumber: true, render: ({ latency_ms: times }) => renderTime(times?.p99) },
  {
    name: 'usage.firstTokenP50',
    isNumber: true,
    render: ({ first_byte_ms: times }) => renderTime(times?.p50),
  },
  {
    name: 'usage.firstTokenP95',
    isNumber: true,
    render: ({ first_byte_ms: times }) => renderTime(times?.p95),
  },
]

/** Marks sums that do not contain all calls, because some have no price. */
function Cost({ line }: { readonly line: Line }) {
  const { cost, unpriced_requests: unpriced } = line
  return (
    <>
      {isCostUnknown(line) ? '–' : renderUsd(Number(cost))}
      {unpriced === 0 ? null : (
        <Text size="xs" c="dimmed">
          {t('usage.unpricedCalls', { count: unpriced })}
        </Text>
      )}
    </>
  )
}

function UsageTable({ by, lines, total, onPick }: ShownUsage & Pick<UsageContentProps, 'onPick'>) {
  const name: Column<Line> = {
    name: heads[by],
    render: (line) =>
      line === total || line.requests === 0 ? (
        line.name
      ) : (
        <Anchor component="button" type="button" size="sm" onClick={() => onPick(line)}>
          {line.name}
        </Anchor>
      ),
  }
  // Shows the newest day first.
  const rows = by === 'day' ? lines.toReversed() : lines
  return (
    <DataTable
      label={t(labels[by])}
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
