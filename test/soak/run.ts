/** Runs `npm run soak`, which looks for growing memory and event loop lag under load (docs/soak.md). */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { BenchFailure } from '../bench/connection.ts'
import { killAll, watchOthers } from '../bench/processes.ts'
import { median } from '../bench/rounds.ts'
import { query, startPostgres } from '../support/postgres.ts'
import { boundRows } from './bounded-rows.ts'
import { type Findings, isGood, renderFindings } from './report.ts'
import { type Sample, type SoakServer, startSoakServer } from './server.ts'
import { Traffic } from './traffic.ts'
import { createWorld } from './world.ts'

const usage = `npm run soak -- [options]

  --minutes <n>    duration of the measurement, 10 by default; memory is compared with the end of the first minute
  --postgres       use a temporary PostgreSQL server instead of SQLite
`

/** The pace of the first step, in actions per second. */
const FIRST_PER_SECOND = 50
const STEPS = 5
const STEP_MS = 6_000
/** Limits the factor by which the pace grows in one step, because code is slow until it is compiled. */
const MAX_SPEED_UP = 3
const HALF_A_CORE = 0.5
const MINUTE_MS = 60_000
const PICTURE_EVERY_MS = 20_000
/** The number of samples; the median is used. */
const SAMPLES = 5
const BETWEEN_SAMPLES_MS = 1_000

function say(line: string): void {
  process.stderr.write(`${line}\n`)
}

/** Measures the server's CPU share, waiting time and CPU seconds per action for `forMs` milliseconds. */
async function watchCpu(server: SoakServer, traffic: Traffic, forMs: number) {
  const before = {
    cpuNs: server.cpuNs(),
    waitedNs: server.waitedNs(),
    ms: performance.now(),
    ended: traffic.ended,
  }
  await wait(forMs)
  const spentMs = (server.cpuNs() - before.cpuNs) / 1e6
  const elapsedMs = performance.now() - before.ms
  return {
    share: spentMs / elapsedMs,
    waitedShare: (server.waitedNs() - before.waitedNs) / 1e6 / elapsedMs,
    // Divides by completed actions, because running ones may only be waiting.
    secondsEach: spentMs / 1e3 / (traffic.ended - before.ended),
  }
}

/** Adjusts the pace until the server uses half of a core. */
async function findPace(server: SoakServer, traffic: Traffic): Promise<void> {
  for (let step = 0; step < STEPS; step++) {
    const { share, secondsEach } = await watchCpu(server, traffic, STEP_MS)
    say(`${traffic.perSecond.toFixed(0)} actions a second take ${(share * 100).toFixed(0)} % of a core`)
    traffic.perSecond = Math.min(MAX_SPEED_UP * traffic.perSecond, HALF_A_CORE / secondsEach)
  }
}

async function sampleMemory(server: SoakServer): Promise<Sample> {
  const samples: Sample[] = []
  for (let count = 0; count < SAMPLES; count++) {
    samples.push(await server.sample())
    await wait(BETWEEN_SAMPLES_MS)
  }
  const middle = (field: keyof Sample) => median(samples.map((sample) => sample[field]))
  const sample = { residentMb: middle('residentMb'), liveMb: middle('liveMb') }
  // Uses the lag of the first sample, because the forced garbage collection slows the later ones down.
  const [begin] = samples as [Sample]
  say(
    `in use ${sample.liveMb.toFixed(1)} MB, resident ${sample.residentMb.toFixed(1)} MB, lag p99 ${begin.lagP99Ms.toFixed(1)} ms`,
  )
  return { ...begin, ...sample }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

async function soak(server: SoakServer, minutes: number): Promise<Omit<Findings, 'othersShare'>> {
  const world = await createWorld(server)
  const traffic = new Traffic(world, FIRST_PER_SECOND, PICTURE_EVERY_MS)
  try {
    await findPace(server, traffic)
    traffic.skipped = 0
    await wait(MINUTE_MS)
    const first = await sampleMemory(server)
    server.resetLag()
    const watched: Awaited<ReturnType<typeof watchCpu>>[] = []
    let last = first
    for (let minute = 1; minute < minutes; minute++) {
      watched.push(await watchCpu(server, traffic, MINUTE_MS))
      last = await sampleMemory(server)
    }
    const cpuShare = mean(watched.map(({ share }) => share))
    const waitedShare = mean(watched.map((one) => one.waitedShare))
    const { perSecond, skipped, tallies } = traffic
    return { minutes, perSecond, cpuShare, waitedShare, first, last, skipped, tallies }
  } finally {
    await traffic.stop()
    world.connections.close()
  }
}

/** Starts a PostgreSQL server if `isWanted`. */
async function openDatabaseServer(isWanted: boolean) {
  if (!isWanted) return { databaseUrl: undefined, remove: async () => {} }
  const server = await startPostgres()
  await query(server.urlOf('postgres'), 'create database soak')
  return { databaseUrl: server.urlOf('soak'), remove: () => server.remove() }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { minutes: { type: 'string' }, postgres: { type: 'boolean' }, help: { type: 'boolean' } },
  })
  const minutes = Number(values.minutes ?? 10)
  if (values.help || !Number.isInteger(minutes) || minutes < 2) {
    process.stdout.write(usage)
    process.exitCode = values.help ? 0 : 2
    return
  }
  const folder = mkdtempSync(join(tmpdir(), 'parley-soak-'))
  process.once('exit', () => {
    killAll()
    rmSync(folder, { recursive: true, force: true })
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
  const { databaseUrl, remove } = await openDatabaseServer(values.postgres ?? false)
  try {
    const dataDir = join(folder, 'data')
    const othersShare = watchOthers()
    const server = await startSoakServer(dataDir, databaseUrl)
    const unbound = await boundRows({ dataDir, databaseUrl })
    const findings = await soak(server, minutes).finally(unbound)
    await server.stop()
    const whole = { ...findings, othersShare: othersShare() }
    process.stdout.write(renderFindings(whole))
    process.exitCode = isGood(whole) ? 0 : 1
  } finally {
    await remove()
  }
}

try {
  await main()
} catch (error) {
  if (!(error instanceof BenchFailure)) throw error
  say(error.message)
  process.exit(1)
}
