/** Exports usage as CSV (RFC 4180). */

import type { Grouping } from '../search.ts'
import type { Line } from './use-usage.ts'

type Cell = string | number

const columns: readonly (readonly [string, (line: Line) => Cell])[] = [
  ['requests', ({ requests }) => requests],
  ['errors', ({ errors }) => errors],
  ['prompt_tokens', ({ prompt_tokens: tokens }) => tokens],
  ['completion_tokens', ({ completion_tokens: tokens }) => tokens],
  ['total_tokens', ({ total_tokens: tokens }) => tokens],
  ['estimated_requests', ({ estimated_requests: requests }) => requests],
  ['cost', ({ cost }) => Number(cost)],
  ['unpriced_requests', ({ unpriced_requests: requests }) => requests],
  ['latency_p50_ms', ({ latency_ms: times }) => times?.p50 ?? ''],
  ['latency_p95_ms', ({ latency_ms: times }) => times?.p95 ?? ''],
  ['latency_p99_ms', ({ latency_ms: times }) => times?.p99 ?? ''],
  ['first_token_p50_ms', ({ first_byte_ms: times }) => times?.p50 ?? ''],
  ['first_token_p95_ms', ({ first_byte_ms: times }) => times?.p95 ?? ''],
  ['first_token_p99_ms', ({ first_byte_ms: times }) => times?.p99 ?? ''],
]

/** Renders the lines as CSV in the given order, with a header line and without a total. */
export function toCsv(lines: readonly Line[], by: Grouping): string {
  const names = columns.map(([name]) => name)
  const head = by === 'day' ? ['day', ...names] : [by, 'name', ...names]
  const rows = lines.map((line) => {
    const figures = columns.map(([, read]) => read(line))
    return by === 'day' ? [line.id, ...figures] : [line.id, line.name, ...figures]
  })
  return [head, ...rows].map((cells) => `${cells.map(toCell).join(',')}\r\n`).join('')
}

/** Renders a cell. Adds an apostrophe before text that a spreadsheet would treat as a formula. */
function toCell(value: Cell): string {
  if (typeof value === 'number') return String(value)
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
