/** What the bench prints: one row per promise of speed, aligned, with its goal. */
import { median } from './rounds.ts'

/** What a row promises: a ratio to bare, or a value in the row's own unit; or nothing, for a figure that is only shown. */
export type Goal = { readonly ratio: number } | { readonly value: number } | undefined

/** One measured row. */
export interface Row {
  /** What was measured, and its unit. */
  readonly name: string
  readonly bare: number
  readonly ours: number
  /** Ours to bare: the median of the rounds' ratios. */
  readonly ratio: number
  /** The smallest and the largest of the rounds' ratios. */
  readonly ratioRange: readonly [number, number]
  readonly goal: Goal
  /** Undefined without a goal. */
  readonly met: boolean | undefined
}

/** A group of rows that could not be measured, because a server answered wrongly or not at all. */
export interface FailedRow {
  readonly name: string
  readonly failure: string
}

/** Makes a row of what each round measured, bare and ours in the same order. */
export function toRow(name: string, bare: readonly number[], ours: readonly number[], goal: Goal): Row {
  const ratios = ours.map((value, round) => value / (bare[round] ?? Number.NaN))
  const middle = { bare: median(bare), ours: median(ours), ratio: median(ratios) }
  return {
    name,
    ...middle,
    ratioRange: [Math.min(...ratios), Math.max(...ratios)],
    goal,
    met: goal && ('ratio' in goal ? middle.ratio <= goal.ratio : middle.ours <= goal.value),
  }
}

/** Renders the table, and below it why rows failed. */
export function renderTable(rows: readonly (Row | FailedRow)[]): string {
  const heading = ['row', 'bare', 'ours', 'ratio', 'goal', 'met']
  const cells = [
    heading,
    ...rows.map((row) => ('failure' in row ? renderFailedCells(row) : renderCells(row))),
  ]
  const widths = heading.map((_, column) => Math.max(...cells.map((line) => line[column]?.length ?? 0)))
  const lines = cells.map((line) =>
    line
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  '),
  )
  const failures = rows.flatMap((row) => ('failure' in row ? [`\n${row.name} FAILED: ${row.failure}`] : []))
  return `${[...lines, ...failures].join('\n')}\n`
}

function renderFailedCells(row: FailedRow): string[] {
  return [row.name, '–', '–', '–', '–', 'FAILED']
}

function renderCells(row: Row): string[] {
  const met = row.met === undefined ? '–' : row.met ? 'yes' : 'NO'
  return [
    row.name,
    renderNumber(row.bare),
    renderNumber(row.ours),
    Number.isNaN(row.ratio) ? '–' : row.ratio.toFixed(2),
    renderGoal(row),
    met,
  ]
}

function renderGoal({ goal }: Row): string {
  if (!goal) return '–'
  return 'ratio' in goal ? `≤ ${goal.ratio.toFixed(2)}` : `ours ≤ ${goal.value}`
}

/** Three significant digits, never an exponent; a dash where there is nothing to compare with. */
function renderNumber(value: number): string {
  if (Number.isNaN(value)) return '–'
  if (value >= 100) return value.toFixed(0)
  return value >= 10 ? value.toFixed(1) : value.toFixed(2)
}
