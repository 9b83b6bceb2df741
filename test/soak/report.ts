/** Renders the results of a soak test and compares them with its limits. */
import type { Sample } from './server.ts'
import type { Tally } from './traffic.ts'

export interface Findings {
  readonly minutes: number
  readonly perSecond: number
  /** The server's CPU time as a share of one core. */
  readonly cpuShare: number
  /** The share of time that the server spent waiting for a core. */
  readonly waitedShare: number
  /** The share of the machine's CPU time that other programs used. */
  readonly othersShare: number
  /** The sample after the first minute. */
  readonly first: Sample
  readonly last: Sample
  readonly skipped: number
  readonly tallies: ReadonlyMap<string, Tally>
}

/** The maximum growth of the memory as a fraction (docs/soak.md). */
const MAX_GROWTH = 0.1
const MAX_LAG_MS = 20
/** If the server waits for a core for more than this share, other programs affect the lag. */
const QUIET_SHARE = 0.05

interface Limit {
  readonly name: string
  readonly figures: string
  readonly goal: string
  /** Undefined for rows without a limit. */
  readonly isMet: boolean | undefined
}

/** Returns whether all limits are met, and no action failed or was skipped. */
export function isGood(findings: Findings): boolean {
  const { tallies, skipped } = findings
  return (
    skipped === 0 &&
    [...tallies.values()].every(({ failed }) => failed === 0) &&
    listLimits(findings).every(({ isMet }) => isMet !== false)
  )
}

function listLimits({ first, last }: Findings): Limit[] {
  const memory = (name: string, field: 'liveMb' | 'residentMb') => {
    const growth = last[field] / first[field] - 1
    const figures = `${first[field].toFixed(1)} MB, then ${last[field].toFixed(1)} MB (${(growth * 100).toFixed(1)} %)`
    return { name, figures, goal: 'within 10 %', isMet: growth <= MAX_GROWTH }
  }
  return [
    memory('memory in use after a collection', 'liveMb'),
    memory('resident memory after a collection', 'residentMb'),
    {
      name: 'event loop lag, p99',
      figures: `${last.lagP99Ms.toFixed(1)} ms (at most ${last.lagMaxMs.toFixed(0)} ms)`,
      goal: `< ${MAX_LAG_MS} ms`,
      isMet: last.lagP99Ms < MAX_LAG_MS,
    },
    {
      name: 'event loop lag caused by the server itself, p99 at most',
      figures: `${last.ownLagP99Ms.toFixed(1)} ms`,
      goal: '–',
      isMet: undefined,
    },
  ]
}

export function renderFindings(findings: Findings): string {
  const { minutes, perSecond, cpuShare, waitedShare, othersShare, tallies, skipped } = findings
  const counts = [...tallies].map(([name, { begun, failed }]) => [name, String(begun), String(failed)])
  const limits = listLimits(findings).map(({ name, figures, goal, isMet }) => [
    name,
    figures,
    goal,
    isMet === undefined ? '–' : isMet ? 'yes' : 'NO',
  ])
  const failures = [...tallies].flatMap(([name, { failure }]) =>
    failure === undefined ? [] : [`${name} FAILED: ${failure}`],
  )
  const lines = [
    `${minutes} minutes at ${perSecond.toFixed(0)} actions a second, using ${percent(cpuShare)} of a core`,
    `other work took ${percent(othersShare)} of the machine; the server waited for a core ${percent(waitedShare)} of the time${
      waitedShare > QUIET_SHARE ? ': NOT QUIET, the event loop lag is not the server’s alone' : ''
    }`,
    '',
    ...renderColumns([['action', 'count', 'failed'], ...counts]),
    ...(skipped === 0
      ? []
      : [`${skipped} actions were not started, because the server or the machine did not keep up`]),
    '',
    ...renderColumns([['measurement', 'after the first minute, then at the end', 'goal', 'met'], ...limits]),
    ...failures,
  ]
  return `${lines.join('\n')}\n`
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}

function renderColumns(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
