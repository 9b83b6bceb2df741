/** Compares two servers in alternating turns; each round gives one ratio. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Server } from './processes.ts'

/** One side of a comparison: a server and the request to send. */
export interface Contestant {
  readonly server: Server
  readonly request: Buffer
}

/** The extent of a comparison; with many short rounds, other work on the machine affects both sides equally. */
export interface Effort {
  /** Uncounted turns of each side at the beginning, until its code is compiled. */
  readonly warmUps: number
  readonly rounds: number
  /** The time in milliseconds after which no round starts, once there are three; warm-ups may use a third of it. */
  readonly limitMs: number
}

/** The results of one side's turns, in order. */
export interface Outcome<T> {
  /** CPU nanoseconds of the server. */
  readonly cpuNs: readonly number[]
  readonly elapsedMs: readonly number[]
  /** The value that each run returned. */
  readonly results: readonly T[]
}

interface Turn<C, T> {
  readonly contestant: C
  /** The server's CPU nanoseconds at the start of the turn. */
  readonly cpuNs: number
  readonly elapsedMs: number
  readonly result: T
}

const leastRounds = 3
/**
 * The pause after the last round, in which deferred work of a server (batched rows, garbage collection) is
 * counted.
 */
const settleMs = 1_200

/** Runs the sides in alternating turns; returns the outcomes in the order of the sides. */
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

/** Returns the CPU that the server uses until its next turn, so that work after the last answer counts too. */
function cpuNsUntilNext(
  { contestant: { server }, cpuNs }: Turn<Pick<Contestant, 'server'>, unknown>,
  later: readonly Turn<Pick<Contestant, 'server'>, unknown>[],
): number {
  const next = later.find((turn) => turn.contestant.server === server)
  return (next?.cpuNs ?? server.cpuNs()) - cpuNs
}

/** Returns the middle value, or the mean of the two middle values of an even count. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  const middle = sorted.length / 2
  const upper = sorted[Math.floor(middle)] ?? Number.NaN
  return Number.isInteger(middle) ? ((sorted[middle - 1] ?? Number.NaN) + upper) / 2 : upper
}
