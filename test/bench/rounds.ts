/** Compares servers that do the same work in alternating turns. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Server } from './processes.ts'

/** A server in a comparison, with the request to send to it. */
export interface Contestant {
  readonly server: Server
  readonly request: Buffer
}

/**
 * The number of turns of each server. Many short rounds spread other work on the machine evenly over both
 * servers.
 */
export interface Effort {
  /** Number of turns that are not measured, so that each server's code is compiled before the first round. */
  readonly warmUps: number
  readonly rounds: number
  /** Milliseconds after which no further round starts, except for the first three. */
  readonly limitMs: number
}

/** The measurements of one server, one value for each round. */
export interface Outcome<T> {
  /** The server's CPU time in nanoseconds. */
  readonly cpuNs: readonly number[]
  /** The part of `cpuNs` that the main thread used. */
  readonly mainCpuNs: readonly number[]
  readonly elapsedMs: readonly number[]
  /** The values that the runs returned. */
  readonly results: readonly T[]
}

interface Turn<C, T> {
  readonly contestant: C
  /** The server's total CPU times at the start of the turn, in nanoseconds. */
  readonly cpuNs: number
  readonly mainCpuNs: number
  readonly elapsedMs: number
  readonly result: T
}

const leastRounds = 3
/**
 * Milliseconds after the last round during which deferred work, such as garbage collection, is still
 * measured.
 */
const settleMs = 1_200

/** Runs the contestants in alternating turns; returns their outcomes in the same order. */
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
  const costs = turns.map((turn, index) => costUntilNext(turn, turns.slice(index + 1)))
  return contestants.map((contestant) => {
    const ownCosts = costs.filter((_, index) => turns[index]?.contestant === contestant)
    const own = turns.filter((turn) => turn.contestant === contestant)
    return {
      cpuNs: ownCosts.map(({ cpuNs }) => cpuNs),
      mainCpuNs: ownCosts.map(({ mainCpuNs }) => mainCpuNs),
      elapsedMs: own.map((turn) => turn.elapsedMs),
      results: own.map((turn) => turn.result),
    }
  })
}

async function takeTurn<C extends Pick<Contestant, 'server'>, T>(
  contestant: C,
  run: (contestant: C) => Promise<T>,
): Promise<Turn<C, T>> {
  const before = costOf(contestant.server)
  const startedMs = performance.now()
  const result = await run(contestant)
  return { contestant, ...before, elapsedMs: performance.now() - startedMs, result }
}

type Cost = Pick<Turn<unknown, unknown>, 'cpuNs' | 'mainCpuNs'>

function costOf(server: Server): Cost {
  return { cpuNs: server.cpuNs(), mainCpuNs: server.mainCpuNs() }
}

/** Returns the server's CPU time from this turn to its next, which includes work after the last response. */
function costUntilNext(
  turn: Turn<Pick<Contestant, 'server'>, unknown>,
  later: readonly Turn<Pick<Contestant, 'server'>, unknown>[],
): Cost {
  const { server } = turn.contestant
  const next = later.find(({ contestant }) => contestant.server === server) ?? costOf(server)
  return { cpuNs: next.cpuNs - turn.cpuNs, mainCpuNs: next.mainCpuNs - turn.mainCpuNs }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  const middle = sorted.length / 2
  const upper = sorted[Math.floor(middle)] ?? Number.NaN
  return Number.isInteger(middle) ? ((sorted[middle - 1] ?? Number.NaN) + upper) / 2 : upper
}
