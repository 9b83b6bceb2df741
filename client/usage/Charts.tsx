/** Shows the usage charts; each has its data in a table below. */
import './usage.css'
import { Group, SimpleGrid, Stack, Text, Title } from '@mantine/core'
import { type Column, DataTable } from '../components/DataTable.tsx'
import { renderCompact, renderShortTime } from '../format.ts'
import type { Series } from './plots.tsx'
import { BarPlot, type ChartPanelProps, LinePlot } from './plots.tsx'
import type { Line, ShownUsage } from './use-usage.ts'

/** Limits the bars to keep charts readable; the table lists all entries. */
const MAX_BARS = 10

const requests: readonly Series[] = [
  { name: 'Succeeded', color: 'var(--chart-1)', read: (line) => line.requests - line.errors },
  { name: 'Failed', color: 'var(--chart-bad)', read: (line) => line.errors },
]
const tokens: readonly Series[] = [
  { name: 'Prompt', color: 'var(--chart-1)', read: (line) => line.prompt_tokens },
  { name: 'Completion', color: 'var(--chart-2)', read: (line) => line.completion_tokens },
]
const latency = timesOf((line) => line.latency_ms)
const firstToken = timesOf((line) => line.first_byte_ms)

const charts = [
  { title: 'Requests', series: requests, shape: 'bars', render: renderCompact },
  { title: 'Tokens', series: tokens, shape: 'bars', render: renderCompact },
  { title: 'Latency', series: latency, shape: 'lines', render: renderShortTime },
  { title: 'Time to first token', series: firstToken, shape: 'lines', render: renderShortTime },
] as const

interface ChartsProps extends Pick<ShownUsage, 'by' | 'lines'> {
  /** Lists the calls of a bar. */
  readonly onPick: (line: Line) => void
}

export function Charts({ by, lines, onPick }: ChartsProps) {
  const shown = by === 'day' ? lines : lines.slice(0, MAX_BARS)
  const isCut = shown.length < lines.length
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="md">
      {charts.map((chart) => (
        <ChartPanel
          key={chart.title}
          {...chart}
          label={`Chart of ${chart.title.toLowerCase()} by ${by}; the table below has the data`}
          title={isCut ? `${chart.title} (top ${MAX_BARS} by tokens)` : chart.title}
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
    { name: 'p50', color: 'var(--chart-1)', read: (line) => read(line)?.p50 ?? null },
    { name: 'p95', color: 'var(--chart-2)', read: (line) => read(line)?.p95 ?? null },
    { name: 'p99', color: 'var(--chart-3)', read: (line) => read(line)?.p99 ?? null },
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
          No data for this period
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
            {name}
          </Text>
        </Group>
      ))}
    </Group>
  )
}

function ChartFigures({ title, by, lines, series, render }: ChartPanelProps) {
  const columns: Column<Line>[] = [
    { name: `By ${by}`, render: ({ name }) => name },
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
      <summary>Show data</summary>
      <DataTable
        label={`Data for ${title.toLowerCase()}`}
        columns={columns}
        rows={lines.toReversed()}
        keyOf={({ id }) => id}
        onPhone="scroll"
      />
    </details>
  )
}
