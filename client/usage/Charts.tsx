/** Shows the usage charts; each has its data in a table below. */
import { t } from '../strings/language.ts'
import './usage.css'
import { Group, SimpleGrid, Stack, Text, Title } from '@mantine/core'
import { type Column, DataTable } from '../components/DataTable.tsx'
import { renderCompact, renderShortTime, renderUsd } from '../format.ts'
import type { Series } from './plots.tsx'
import { BarPlot, type ChartPanelProps, LinePlot } from './plots.tsx'
import type { Line, ShownUsage } from './use-usage.ts'

/** Limits the bars to keep charts readable; the table lists all entries. */
const MAX_BARS = 10

const requests: readonly Series[] = [
  { name: 'usage.succeeded', color: 'var(--chart-1)', read: (line) => line.requests - line.errors },
  { name: 'usage.failed', color: 'var(--chart-bad)', read: (line) => line.errors },
]
const tokens: readonly Series[] = [
  { name: 'usage.prompt', color: 'var(--chart-1)', read: (line) => line.prompt_tokens },
  { name: 'usage.completion', color: 'var(--chart-2)', read: (line) => line.completion_tokens },
]
const cost: readonly Series[] = [
  { name: 'usage.cost', color: 'var(--chart-1)', read: (line) => Number(line.cost) },
]
const latency = timesOf((line) => line.latency_ms)
const firstToken = timesOf((line) => line.first_byte_ms)

const charts = [
  {
    title: 'usage.requests',
    data: 'usage.requestsData',
    series: requests,
    shape: 'bars',
    render: renderCompact,
  },
  { title: 'usage.cost', data: 'usage.costData', series: cost, shape: 'bars', render: renderUsd },
  { title: 'usage.tokens', data: 'usage.tokensData', series: tokens, shape: 'bars', render: renderCompact },
  {
    title: 'usage.latency',
    data: 'usage.latencyData',
    series: latency,
    shape: 'lines',
    render: renderShortTime,
  },
  {
    title: 'usage.firstToken',
    data: 'usage.firstTokenData',
    series: firstToken,
    shape: 'lines',
    render: renderShortTime,
  },
] as const

const byNames = {
  day: 'usage.byDay',
  agent: 'usage.byAgent',
  model: 'usage.byModel',
  key: 'usage.byKey',
} as const

interface ChartsProps extends Pick<ShownUsage, 'by' | 'lines'> {
  /** Lists the calls that a bar counts. */
  readonly onPick: (line: Line) => void
}

export function Charts({ by, lines, onPick }: ChartsProps) {
  const shown = by === 'day' ? lines : lines.slice(0, MAX_BARS)
  const hasCost = lines.some((line) => Number(line.cost) > 0)
  const isCut = shown.length < lines.length
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="md">
      {charts
        .filter(({ series }) => series !== cost || hasCost)
        .map(({ title, data, ...chart }) => (
          <ChartPanel
            key={title}
            {...chart}
            label={t('usage.chartLabel', { title: t(title), by: t(byNames[by]) })}
            title={isCut ? t('usage.chartTop', { title: t(title), number: MAX_BARS }) : t(title)}
            dataLabel={t(data)}
            by={by}
            lines={shown}
            onPick={onPick}
          />
        ))}
    </SimpleGrid>
  )
}

function timesOf(read: (line: Line) => Line['latency_ms']): readonly Series[] {
  return [
    { name: 'usage.p50', color: 'var(--chart-1)', read: (line) => read(line)?.p50 ?? null },
    { name: 'usage.p95', color: 'var(--chart-2)', read: (line) => read(line)?.p95 ?? null },
    { name: 'usage.p99', color: 'var(--chart-3)', read: (line) => read(line)?.p99 ?? null },
  ]
}

function ChartPanel(props: ChartPanelProps) {
  const { title, by, series, lines } = props
  const hasAny = lines.some((line) => series.some(({ read }) => read(line) !== null))
  const Plot = props.shape === 'lines' && by === 'day' ? LinePlot : BarPlot
  return (
    <Stack className="panel chart-panel" gap="xs" p="md" component="section" aria-label={title}>
      <Group justify="space-between">
        <Title order={2}>{title}</Title>
        <Legend series={series} />
      </Group>
      {hasAny ? (
        <Plot {...props} />
      ) : (
        <Text c="dimmed" size="sm" className="chart-nothing">
          {t('usage.noData')}
        </Text>
      )}
      <ChartFigures {...props} />
    </Stack>
  )
}

function Legend({ series }: Pick<ChartPanelProps, 'series'>) {
  return (
    <Group gap="sm">
      {series.map(({ name, color }) => (
        <Group key={name} gap={6}>
          <span className="chart-key" style={{ background: color }} />
          <Text size="xs" c="dimmed">
            {t(name)}
          </Text>
        </Group>
      ))}
    </Group>
  )
}

function ChartFigures({ dataLabel, by, lines, series, render }: ChartPanelProps) {
  const columns: Column<Line>[] = [
    { name: byNames[by], render: ({ name }) => name },
    ...series.map(({ name, read }) => ({
      name,
      isNumber: true,
      render: (line: Line) => {
        const value = read(line)
        return value === null ? '–' : render(value)
      },
    })),
  ]
  return (
    <details className="chart-figures">
      <summary>{t('usage.showData')}</summary>
      <DataTable
        label={dataLabel}
        columns={columns}
        rows={lines.toReversed()}
        keyOf={({ id }) => id}
        onPhone="scroll"
      />
    </details>
  )
}
