/** What docs/observability.md promises, read from its tables. */
import { readFileSync } from 'node:fs'

const doc = readFileSync(new URL('../../docs/observability.md', import.meta.url), 'utf8')

/** A metric as the document names it. */
export interface PromisedMetric {
  readonly name: string
  readonly type: string
  readonly labels: readonly string[]
  /** Whether it is there without PostgreSQL and without workers. */
  readonly isEverywhere: boolean
}

/** A kind of span as the document names it. */
export interface PromisedSpan {
  /** As in the document: what stands in braces varies. */
  readonly name: string
  readonly kind: string
  readonly attributes: readonly string[]
}

/** Rows of the table whose first column has that heading, without the bars. */
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

/** What stands in the text beside the table. */
export const processMetrics: readonly string[] = listCodes(
  doc.slice(doc.indexOf('Each server also exports the usual metrics'), doc.indexOf('Pauses of')),
)
