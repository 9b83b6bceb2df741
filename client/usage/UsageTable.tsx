/** Every figure there is, a line each, and what they add up to. */
import { type Column, DataTable } from '../components/DataTable.tsx'
import { renderMilliseconds, renderNumber } from '../lib/format.ts'
import type { Line } from './lines.ts'
import type { ShownUsage } from './use-usage.ts'

const heads = { day: 'Day', agent: 'Agent', model: 'Model', key: 'Key' } as const

const figures: readonly Column<Line>[] = [
  { name: 'Requests', isNumber: true, render: ({ requests }) => renderNumber(requests) },
  { name: 'Errors', isNumber: true, render: ({ errors }) => renderNumber(errors) },
  { name: 'Tokens in', isNumber: true, render: ({ prompt_tokens: tokens }) => renderNumber(tokens) },
  { name: 'Tokens out', isNumber: true, render: ({ completion_tokens: tokens }) => renderNumber(tokens) },
  { name: 'Latency p50', isNumber: true, render: ({ latency_ms: times }) => renderTime(times?.p50) },
  { name: 'p95', isNumber: true, render: ({ latency_ms: times }) => renderTime(times?.p95) },
  { name: 'p99', isNumber: true, render: ({ latency_ms: times }) => renderTime(times?.p99) },
  { name: 'First token p50', isNumber: true, render: ({ first_byte_ms: times }) => renderTime(times?.p50) },
  { name: 'First token p95', isNumber: true, render: ({ first_byte_ms: times }) => renderTime(times?.p95) },
]

export function UsageTable({ by, lines, total }: Pick<ShownUsage, 'by' | 'lines' | 'total'>) {
  const name: Column<Line> = { name: heads[by], render: (line) => line.name }
  // The newest day is what one looks for.
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

export function renderTime(milliseconds: number | undefined): string {
  return milliseconds === undefined ? '–' : renderMilliseconds(milliseconds)
}
