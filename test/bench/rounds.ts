/** How two servers are compared: in turns, round after round, each round giving one ratio. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Server } from './processes.ts'

/** One side of a comparison: a server, and what is asked of it. */
export interface Contestant {
  readonly server: Server
  readonly request: Buffer
}

/** How long a comparison goes on. Many short rounds: what else runs on the machine then meets both sides alike. */
export interface Effort {
  /** Uncounted turns of each side first, until its code is compiled. */
  readonly warmUps: number
  readonly rounds: number
  /** After this many milliseconds no round is begun, once there are three; after a third of them no warm-up. */
  readonly limitMs: number
}

/** What one contestant's turns brought, in the order they were run. */
export interface Outcome<T> {
  /** CPU nanoseconds of the server. */
  readonly cpuNs: readonly number[]
  readonly elapsedMs: readonly number[]
  /** What each run returned. */
  readonly results: readonly T[]
}

interface Turn<C, T> {
  readonly contestant: C
  /** The server's CPU when the turn began. */
  readonly cpuNs: number
  readonly elapsedMs: number
  readonly result: T
}

const leastRounds = 3
/** Work that a server puts off (batched rows, garbage) is waited for after the last round, and counted. */
const settleMs = 1_200

/** Lets the contestants run in turns; the outcomes come in the order of the contestants. */
export async function compare<C extends Pick<Contestant, 'server'>, T>(
  contestants: readonly C[],
  effort: Effort,
  run: (contestant: C) => Promise<T>,
): Promise<Outcome<T>[]> {
  const startedMs = performance.now()
  const isPast = (share: number) => performance.now() - startedMs > effort.limitMs * share
  for (let turn = 0; turn < effort.warmUps; turn++) {
    if (isPast(1 / 3)) break
    for (const contestant of contestants) await run(contestant)
  }
  const turns: Turn<C, T>[] = []
  for (let round = 0; round < effort.rounds; round++) {
    if (round >= leastRounds && isPast(1)) break
    for (const contestant of contestants) turns.push(await takeTurn(contestant, run))
  }
  await sleep(settleMs)
  const costs = turns.map((turn, index) => cpuNsUntilNext(turn, turns.slice(index + 1)))
  return contestants.map((contestant) => {
    const own = turns.filter((turn) => turn.contestant === contestant)
    return {
      cpuNs: costs.filter((_, index) => turns[index]?.contestant === contestant),
      elapsedMs: own.map((turn) => turn.elapsedMs),
      results: own.map((turn) => turn.result),
    }
  })
}

async function takeTurn<C extends Pick<Contestant, 'server'>, T>(
  contestant: C,
  run: (contestant: C) => Promise<T>,
): Promise<Turn<C, T>> {
  const cpuNs = contestant.server.cpuNs()
  const startedMs = performance.now()
  const result = await run(contestant)
  return { contestant, cpuNs, elapsedMs: performance.now() - startedMs, result }
}

/** A turn costs what its server uses until that server's next turn: work done after the last answer counts too. */
function cpuNsUntilNext(
  { contestant: { server }, cpuNs }: Turn<Pick<Contestant, 'server'>, unknown>,
  later: readonly Turn<Pick<Contestant, 'server'>, unknown>[],
): number {
  const next = later.find((turn) => turn.contestant.server === server)
  return (next?.cpuNs ?? server.cpuNs()) - cpuNs
}

/** The middle value; the mean of the two middle ones of an even count. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  const middle = sorted.length / 2
  const upper = sorted[Math.floor(middle)] ?? Number.NaN
  return Number.isInteger(middle) ? ((sorted[middle - 1] ?? Number.NaN) + upper) / 2 : upper
}
