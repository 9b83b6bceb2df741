/** What a soak ends with: what was done, what the bars are, and which of them were missed. */
import type { Sample } from './server.ts'
import type { Tally } from './traffic.ts'

export interface Findings {
  readonly minutes: number
  readonly perSecond: number
  /** Of one core, by the server while it was measured. */
  readonly cpuShare: number
  /** Of the time, in which it had to wait for a core. */
  readonly waitedShare: number
  /** Of the machine, by others. */
  readonly othersShare: number
  /** After the first minute, and at the end. */
  readonly first: Sample
  readonly last: Sample
  readonly skipped: number
  readonly tallies: ReadonlyMap<string, Tally>
}

/** Issue 9. */
const MOST_GROWTH = 0.1
const MOST_LATENESS_MS = 20
/** With more waiting than this, lateness says something about the machine. */
const QUIET_SHARE = 0.05

interface Bar {
  readonly name: string
  readonly figures: string
  readonly bar: string
  /** Undefined for what is only shown. */
  readonly isMet: boolean | undefined
}

/** Whether every bar is met and every answer was right. */
export function isGood(findings: Findings): boolean {
  const { tallies, skipped } = findings
  return (
    skipped === 0 &&
    [...tallies.values()].every(({ failed }) => failed === 0) &&
    listBars(findings).every(({ isMet }) => isMet !== false)
  )
}

function listBars({ first, last }: Findings): Bar[] {
  const memory = (name: string, field: 'liveMb' | 'residentMb') => {
    const growth = last[field] / first[field] - 1
    const figures = `${first[field].toFixed(1)} MB, then ${last[field].toFixed(1)} MB (${(growth * 100).toFixed(1)} %)`
    return { name, figures, bar: 'within 10 %', isMet: growth <= MOST_GROWTH }
  }
  return [
    memory('memory in use after a collection', 'liveMb'),
    memory('resident memory then', 'residentMb'),
    {
      name: 'lateness of the event loop, p99',
      figures: `${last.latenessP99Ms.toFixed(1)} ms (at most ${last.latenessMaxMs.toFixed(0)} ms)`,
      bar: `< ${MOST_LATENESS_MS} ms`,
      isMet: last.latenessP99Ms < MOST_LATENESS_MS,
    },
    {
      name: 'what its own work can have made of that',
      figures: `${last.ownLatenessP99Ms.toFixed(1)} ms`,
      bar: '–',
      isMet: undefined,
    },
  ]
}

export function renderFindings(findings: Findings): string {
  const { minutes, perSecond, cpuShare, waitedShare, othersShare, tallies, skipped } = findings
  const counts = [...tallies].map(([name, { begun, failed }]) => [name, String(begun), String(failed)])
  const bars = listBars(findings).map(({ name, figures, bar, isMet }) => [
    name,
    figures,
    bar,
    isMet === undefined ? '–' : isMet ? 'yes' : 'NO',
  ])
  const failures = [...tallies].flatMap(([name, { failure }]) =>
    failure === undefined ? [] : [`${name} FAILED: ${failure}`],
  )
  const lines = [
    `${minutes} minutes at ${perSecond.toFixed(0)} actions a second, which took ${percent(cpuShare)} of a core`,
    `other work took ${percent(othersShare)} of the machine; the server waited for a core ${percent(waitedShare)} of the time${
      waitedShare > QUIET_SHARE ? ': NOT QUIET, its lateness is not its own' : ''
    }`,
    '',
    ...renderColumns([['done', 'times', 'failed'], ...counts]),
    ...(skipped === 0 ? [] : [`${skipped} were not begun: the server, or the machine, did not keep up`]),
    '',
    ...renderColumns([['bar', 'after the first minute, then at the end', 'goal', 'met'], ...bars]),
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
