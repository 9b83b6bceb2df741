/** Measures stored turns on storage whose syncs take 10 ms longer, and the memory of 2,000 stored streams. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { BenchFailure, Connection } from './connection.ts'
import { measureKbPerStream } from './footprint.ts'
import { runStreams } from './load.ts'
import type { Server } from './processes.ts'
import { type Row, toRow } from './report.ts'
import { compare, median } from './rounds.ts'
import { type BenchSetup, limitMs } from './setup.ts'
import { createStoringAgent, microsPer, offAndOn } from './stored-turns.ts'

const NAME = 'stored turns, syncs 10 ms longer (bare: not stored)'
const LOAD = { connections: 50, streamsEach: 1, chunks: 50 }
/** Longer than a sync, as with real models. */
const FIRST_CHUNK_MS = 50
const PROBE_EVERY_MS = 5

export async function measureSlowSync(setup: BenchSetup): Promise<Row[]> {
  const server = await setup.startOursEmpty({ LD_PRELOAD: compileSlowSync(setup.folder) })
  try {
    const key = await createStoringAgent(server, await server.printedKey())
    await setup.plan({ chunks: LOAD.chunks, chunksPerWrite: 1, intervalMs: FIRST_CHUNK_MS })
    const effort = { ...setup.effort, warmUps: 1 }
    const [off, on] = await compare(offAndOn(server, key), effort, async ({ request }) => {
      const probe = probeStalls(server)
      const firstMs = median(await runStreams({ ...LOAD, port: server.port, request, limitMs }))
      return { firstMs, stallMs: await probe.stop() }
    })
    if (!off || !on) return []
    const units = LOAD.connections * LOAD.chunks
    const [firstOff, firstOn] = [off, on].map(({ results }) => results.map(({ firstMs }) => firstMs))
    const [stallOff, stallOn] = [off, on].map(({ results }) => results.map(({ stallMs }) => stallMs))
    return [
      toRow(`${NAME}: CPU µs a chunk`, microsPer(units, off), microsPer(units, on), { ratio: 1.15 }),
      toRow(`${NAME}: p50 ms to first token`, firstOff ?? [], firstOn ?? [], { ratio: 1.3, added: 1 }),
      toRow(`${NAME}: longest ms of another request`, stallOff ?? [], stallOn ?? [], { value: 20 }),
    ]
  } finally {
    await server.stop()
  }
}

function compileSlowSync(folder: string): string {
  const library = join(folder, 'slow-sync.so')
  try {
    execFileSync('cc', ['-shared', '-fPIC', '-o', library, 'test/support/slow-sync.c', '-ldl'])
  } catch (error) {
    throw new BenchFailure(`The library that delays syncs was not compiled: ${(error as Error).message}`)
  }
  return library
}

/**
 * Sends small requests one after another until it is stopped; then returns the longest response time in
 * milliseconds.
 */
function probeStalls({ port }: Server): { stop(): Promise<number> } {
  let isStopped = false
  async function probe(): Promise<number> {
    const connection = await Connection.open(port)
    const request = Buffer.from('GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n')
    let longestMs = 0
    while (!isStopped) {
      const startedMs = performance.now()
      await connection.exchange(request, { onPayload() {}, onEnd() {} })
      longestMs = Math.max(longestMs, performance.now() - startedMs)
      await sleep(PROBE_EVERY_MS)
    }
    connection.close()
    return longestMs
  }
  const probing = probe()
  return {
    stop() {
      isStopped = true
      return probing
    },
  }
}

/** Compares the memory per stream of 2,000 stored and 2,000 unstored streams with one chunk per second. */
export async function measureStoredMemory(setup: BenchSetup): Promise<Row[]> {
  const kb: number[][] = [[], []]
  for (let round = 0; round < setup.slowRounds; round++)
    for (const index of [0, 1]) {
      const server = await setup.startOursEmpty()
      try {
        const key = await createStoringAgent(server, await server.printedKey())
        const request = offAndOn(server, key)[index]?.request as Buffer
        kb[index]?.push(await measureKbPerStream(setup, server, request, 4))
      } finally {
        await server.stop()
      }
    }
  const [off = [], on = []] = kb
  return [toRow('2,000 slow stored streams (bare: not stored): KB each', off, on, { value: 96 })]
}
