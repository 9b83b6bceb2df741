/** Reads the documented metrics and spans from the tables in docs/observability.md. */
import { readFileSync } from 'node:fs'

const doc = readFileSync(new URL('../../docs/observability.md', import.meta.url), 'utf8')

export interface PromisedMetric {
  readonly name: string
  readonly type: string
  readonly labels: readonly string[]
  /** True if the metric also exists without PostgreSQL and without workers. */
  readonly isEverywhere: boolean
}

export interface PromisedSpan {
  /** The span's name, with variable parts in braces. */
  readonly name: string
  readonly kind: string
  readonly attributes: readonly string[]
}

/** Returns the cells of the table whose first column is `heading`, row by row. */
function readTable(heading: string): string[][] {
  const lines = doc.split('\n')
  const start = lines.findIndex((line) => line.startsWith(`| ${heading} |`))
  const rows = lines.slice(start + 2)
  const end = rows.findIndex((line) => !line.startsWith('|'))
  return rows.slice(0, end).map((row) =>
    row
      .split('|')
      .map((cell) => cell.trim())
      .slice(1, -1),
  )
}

const listCodes = (cell = '') => [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)

export const promisedMetrics: readonly PromisedMetric[] = readTable('Metric').map(
  ([name, type = '', labels, meaning = '']) => ({
    name: listCodes(name)[0] as string,
    type,
    labels: listCodes(labels),
    isEverywhere: !/ only\.$/.test(meaning),
  }),
)

export const promisedSpans: readonly PromisedSpan[] = readTable('Span').map(
  ([name, kind = '', attributes]) => ({
    name: listCodes(name)[0] as string,
    kind,
    attributes: listCodes(attributes),
  }),
)

/** The names of the process metrics, which the page lists in a paragraph. */
export const processMetrics: readonly string[] = listCodes(
  doc.slice(doc.indexOf('`process_cpu_seconds_total`'), doc.indexOf('The server starts to measure')),
)
