/** Measures a server's start time, its memory when idle and its memory per stream. */
import { setTimeout as sleep } from 'node:timers/promises'
import { runRequests, runStreams } from './load.ts'
import type { Server } from './processes.ts'
import { type Row, toRow } from './report.ts'
import { chatRequest, isCompletion } from './requests.ts'
import { type BenchSetup, limitMs, model } from './setup.ts'

/** Compares the memory per stream with 2,000 streams of one chunk per second. */
export async function measureSlowStreams(setup: BenchSetup): Promise<Row[]> {
  const chunks = 4
  const request = chatRequest(setup.parentKey, { model, stream: true })
  const measure = async (server: Server) => {
    try {
      return await measureKbPerStream(setup, server, request, chunks)
    } finally {
      await server.stop()
    }
  }
  const bare: number[] = []
  const ours: number[] = []
  for (let round = 0; round < setup.slowRounds; round++) {
    bare.push(await measure(await setup.startBare()))
    ours.push(await measure(await setup.startOurs()))
  }
  return [toRow('2,000 slow streams, all complete: KB each', bare, ours, { value: 80 })]
}

/** Returns how much a new server's memory grows with 2,000 slow streams, in KB per stream. */
export async function measureKbPerStream(
  setup: BenchSetup,
  server: Server,
  request: Buffer,
  chunks: number,
): Promise<number> {
  const connections = 2_000
  const run = { port: server.port, request, streamsEach: 1, limitMs: 2 * limitMs }
  await setup.plan({ chunks: 4, chunksPerWrite: 1, intervalMs: 0 })
  await runStreams({ ...run, connections: 20, chunks: 4 })
  await setup.plan({ chunks, chunksPerWrite: 1, intervalMs: 1_000 })
  await sleep(300)
  const idleKb = server.residentKb()
  let highestKb = idleKb
  const sampler = setInterval(() => {
    highestKb = Math.max(highestKb, server.residentKb())
  }, 200)
  try {
    await runStreams({ ...run, connections, chunks })
  } finally {
    clearInterval(sampler)
  }
  return (highestKb - idleKb) / connections
}

export async function measureStart(setup: BenchSetup): Promise<Row[]> {
  const measured = { bare: newStarts(), ours: newStarts(), oursEmpty: newStarts() }
  for (let round = 0; round < setup.starts; round++) {
    await measureOneStart(measured.bare, await setup.startBare(), setup.parentKey)
    await measureOneStart(measured.ours, await setup.startOurs(), setup.parentKey)
    await measureOneStart(measured.oursEmpty, await setup.startOursEmpty())
  }
  const { bare, ours, oursEmpty } = measured
  return [
    toRow('start to first answer: ms', bare.answeredMs, ours.answeredMs, { value: 450 }),
    toRow('first start, empty data directory: ms', bare.answeredMs, oursEmpty.answeredMs, undefined),
    toRow('idle memory: MB', bare.idleMb, ours.idleMb, { value: 120 }),
  ]
}

interface Starts {
  readonly answeredMs: number[]
  readonly idleMb: number[]
}

function newStarts(): Starts {
  return { answeredMs: [], idleMb: [] }
}

async function measureOneStart(starts: Starts, server: Server, key?: string): Promise<void> {
  try {
    const request = chatRequest(key ?? (await server.printedKey()), { model, stream: false })
    const run = { port: server.port, request, connections: 1, count: 1, isRight: isCompletion, limitMs }
    await runRequests(run)
    starts.answeredMs.push(performance.now() - server.spawnedMs)
    await sleep(1_000)
    starts.idleMb.push(server.residentKb() / 1_024)
  } finally {
    await server.stop()
  }
}
