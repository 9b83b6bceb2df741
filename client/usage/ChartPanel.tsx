/** One chart, what its colors mean, and the figures it is drawn from. */
import { Group, Stack, Text, Title } from '@mantine/core'
import { type Column, DataTable } from '../components/DataTable.tsx'
import type { Line } from './lines.ts'
import { BarPlot, type ChartPanelProps, LinePlot } from './plots.tsx'

export function ChartPanel(props: ChartPanelProps) {
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
        <div role="img" aria-label={`A chart of ${title.toLowerCase()} by ${by}; its figures are below`}>
          <Plot {...props} />
        </div>
      ) : (
        <Text c="dimmed" size="sm" className="chart-nothing">
          Nothing was measured on these days.
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
      <summary>Figures</summary>
      <DataTable
        label={`Figures of ${title.toLowerCase()}`}
        columns={columns}
        rows={lines.toReversed()}
        keyOf={({ id }) => id}
        onPhone="scroll"
      />
    </details>
  )
}
