/** The charts of usage, each with its figures as a table beneath; loaded when they are wanted. */
import './usage.css'
import { SimpleGrid } from '@mantine/core'
import { renderCompact, renderShortTime } from '../lib/format-short.ts'
import { ChartPanel } from './ChartPanel.tsx'
import type { Line } from './lines.ts'
import type { Series } from './plots.tsx'
import type { ShownUsage } from './use-usage.ts'

/** More bars than these cannot be told apart; the table has them all. */
const MOST_BARS = 10

const requests: readonly Series[] = [
  { name: 'Answered', color: 'var(--chart-1)', read: (line) => line.requests - line.errors },
  { name: 'Failed', color: 'var(--chart-bad)', read: (line) => line.errors },
]
const tokens: readonly Series[] = [
  { name: 'In', color: 'var(--chart-1)', read: (line) => line.prompt_tokens },
  { name: 'Out', color: 'var(--chart-2)', read: (line) => line.completion_tokens },
]
const latency = timesOf((line) => line.latency_ms)
const firstToken = timesOf((line) => line.first_byte_ms)

const charts = [
  { title: 'Requests', series: requests, shape: 'bars', render: renderCompact },
  { title: 'Tokens', series: tokens, shape: 'bars', render: renderCompact },
  { title: 'Latency', series: latency, shape: 'lines', render: renderShortTime },
  { title: 'Time to first token', series: firstToken, shape: 'lines', render: renderShortTime },
] as const

export function Charts({ by, lines }: Pick<ShownUsage, 'by' | 'lines'>) {
  const shown = by === 'day' ? lines : lines.slice(0, MOST_BARS)
  const isCut = shown.length < lines.length
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="md">
      {charts.map((chart) => (
        <ChartPanel
          key={chart.title}
          {...chart}
          title={isCut ? `${chart.title}, the ${MOST_BARS} with most tokens` : chart.title}
          by={by}
          lines={shown}
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
