/** Renders the benchmark's results as a table with one row for each measurement. */
import { median } from './rounds.ts'

/**
 * A limit for a row's ratio to the baseline, or for its value in the row's unit; undefined if there is no
 * limit. `added` is a constant allowance on top of the ratio.
 */
export type Goal =
  | { readonly ratio: number; readonly added?: number }
  | { readonly value: number }
  | { readonly leastRatio: number }
  | { readonly leastValue: number }
  | undefined

export interface Row {
  /** The name of the measurement, with its unit. */
  readonly name: string
  readonly bare: number
  readonly ours: number
  /** The median over all rounds of Parley's value divided by the baseline's. */
  readonly ratio: number
  /** The smallest and the largest ratio of a round. */
  readonly ratioRange: readonly [number, number]
  readonly goal: Goal
  /** Whether the goal is met; undefined without a goal. */
  readonly met: boolean | undefined
}

/** A group of rows that could not be measured, with the error message. */
export interface FailedRow {
  readonly name: string
  readonly failure: string
}

/** Creates a row from the values of the baseline (`bare`) and of Parley (`ours`) in each round. */
export function toRow(name: string, bare: readonly number[], ours: readonly number[], goal: Goal): Row {
  const ratios = ours.map((value, round) => value / (bare[round] ?? Number.NaN))
  const middle = { bare: median(bare), ours: median(ours), ratio: median(ratios) }
  return {
    name,
    ...middle,
    ratioRange: [Math.min(...ratios), Math.max(...ratios)],
    goal,
    met: goal && isMet(goal, middle),
  }
}

function isMet(
  goal: NonNullable<Goal>,
  { bare, ours, ratio }: Pick<Row, 'bare' | 'ours' | 'ratio'>,
): boolean {
  if ('ratio' in goal)
    return goal.added === undefined ? ratio <= goal.ratio : ours <= bare * goal.ratio + goal.added
  if ('leastRatio' in goal) return ratio >= goal.leastRatio
  return 'value' in goal ? ours <= goal.value : ours >= goal.leastValue
}

/** Renders the table, followed by the errors of failed rows. */
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
  if ('ratio' in goal)
    return `≤ ${goal.ratio.toFixed(2)}${goal.added === undefined ? '' : ` + ${goal.added}`}`
  if ('leastRatio' in goal) return `≥ ${goal.leastRatio.toFixed(2)}`
  return 'value' in goal ? `ours ≤ ${goal.value}` : `ours ≥ ${goal.leastValue}`
}

/** Formats a number with at most two decimals, and with fewer if it is larger; NaN becomes a dash. */
function renderNumber(value: number): string {
  if (Number.isNaN(value)) return '–'
  if (value >= 100) return value.toFixed(0)
  return value >= 10 ? value.toFixed(1) : value.toFixed(2)
}
