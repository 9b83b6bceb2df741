/** Measures the cost of storing an agent's turns, compared to `store: false` on the same server. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { BenchFailure } from './connection.ts'
import { runStreams } from './load.ts'
import type { Server } from './processes.ts'
import { type Row, toRow } from './report.ts'
import { post } from './requests.ts'
import { compare, median, type Outcome } from './rounds.ts'
import { type BenchSetup, limitMs } from './setup.ts'
import { CHAT_PATH, createStoringAgent, microsPer, offAndOn, turnBody } from './stored-turns.ts'

const CHUNKS = 400
const NAME = 'stored turn (bare: not stored)'
/** The maximum size of a stored turn, in KiB: twice the 2,000 bytes of its text, plus 16 KiB. */
const STORED_KB = 20
/** The additional millisecond is for the commit that a turn may wait for before its first event. */
const FIRST_TOKEN_GOAL = { ratio: 1.3, added: 1 }

/** The column `bare` shows turns that are not stored, and `ours` shows stored turns. */
export async function measureConversations(setup: BenchSetup): Promise<Row[]> {
  const server = await setup.startOursEmpty()
  try {
    const key = await createStoringAgent(server, await server.printedKey())
    const full = await measureFullSpeed(setup, server, key)
    const paced = await measurePaced(setup, server, key)
    const first = await measureFirstToken(setup, server, key)
    const stored = await measureStored(setup, server, key)
    return [...full, ...paced, ...first, ...stored]
  } finally {
    await server.stop()
  }
}

async function measureFullSpeed(setup: BenchSetup, server: Server, key: string): Promise<Row[]> {
  const load = { connections: 50, streamsEach: 2, chunks: CHUNKS }
  await setup.plan({ chunks: CHUNKS, chunksPerWrite: 4, intervalMs: 0 })
  const [off, on] = await compare(offAndOn(server, key), setup.effort, ({ request }) =>
    runStreams({ ...load, port: server.port, request, limitMs }),
  )
  if (!off || !on) return []
  const units = load.connections * load.streamsEach * CHUNKS
  const toRowOf = (what: string, part: 'cpuNs' | 'mainCpuNs', ratio: number) =>
    toRow(`${NAME}: ${what}`, microsPer(units, off, part), microsPer(units, on, part), { ratio })
  return [
    toRowOf('CPU µs a chunk', 'cpuNs', 1.5),
    toRowOf('CPU µs of the main thread a chunk', 'mainCpuNs', 1.3),
  ]
}

async function measurePaced(setup: BenchSetup, server: Server, key: string): Promise<Row[]> {
  const load = { connections: 200, streamsEach: 1, chunks: 50 }
  await setup.plan({ chunks: load.chunks, chunksPerWrite: 1, intervalMs: 20 })
  const [off, on] = await compare(offAndOn(server, key), { ...setup.effort, warmUps: 1 }, ({ request }) =>
    runStreams({ ...load, port: server.port, request, limitMs }),
  )
  if (!off || !on) return []
  const units = load.connections * load.chunks
  const name = `200 ${NAME.replace('turn', 'turns')} at 50 chunks/s: CPU µs a chunk`
  return [toRow(name, microsPer(units, off), microsPer(units, on), { ratio: 1.15 })]
}

async function measureFirstToken(setup: BenchSetup, server: Server, key: string): Promise<Row[]> {
  const load = { connections: 1, streamsEach: 100, chunks: 4 }
  await setup.plan({ chunks: load.chunks, chunksPerWrite: 1, intervalMs: 0 })
  const [off, on] = await compare(offAndOn(server, key), setup.effort, async ({ request }) =>
    median(await runStreams({ ...load, port: server.port, request, limitMs })),
  )
  if (!off || !on) return []
  return [toRow(`${NAME}: p50 ms to first token`, off.results, on.results, FIRST_TOKEN_GOAL)]
}

/** Measures the stored bytes of a turn, and the CPU time of reading its events again. */
async function measureStored(setup: BenchSetup, server: Server, key: string): Promise<Row[]> {
  await setup.plan({ chunks: CHUNKS, chunksPerWrite: 4, intervalMs: 0 })
  const url = `http://127.0.0.1:${server.port}${CHAT_PATH}`
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const first = await fetch(url, { method: 'POST', headers, body: turnBody(true) })
  const id = /^id: (\S+)\.0\n/.exec(await first.text())?.[1]
  if (id === undefined) throw new BenchFailure('The stream has no event ids.')
  const turns = 400
  const request = post(CHAT_PATH, key, turnBody(true))
  const beforeKb = storedKb(setup.folder)
  await runStreams({
    connections: 20,
    streamsEach: turns / 20,
    chunks: CHUNKS,
    port: server.port,
    request,
    limitMs,
  })
  const kb = (storedKb(setup.folder) - beforeKb) / turns
  const resume = Buffer.from(
    post(CHAT_PATH, key, '{}').toString().replace('\r\n\r\n', `\r\nlast-event-id: ${id}.0\r\n\r\n`),
  )
  const resumes = { connections: 4, streamsEach: 25, chunks: CHUNKS }
  const [read] = await compare([{ server }], setup.effort, () =>
    runStreams({ ...resumes, port: server.port, request: resume, limitMs }),
  )
  const cpuMs = microsPer(resumes.connections * resumes.streamsEach * 1e3, read as Outcome<unknown>)
  return [
    toRow('stored turn of 400 chunks: KB in the database', [Number.NaN], [kb], { value: STORED_KB }),
    toRow('resume of 400 chunks: CPU ms', [Number.NaN], cpuMs, { value: 5 }),
  ]
}

/** Returns the total size of the conversations.db files in a folder, in KiB. */
function storedKb(folder: string): number {
  const files = readdirSync(folder, { recursive: true }).filter((name) =>
    String(name).endsWith('conversations.db'),
  )
  const sizes = files.map((name) => statSync(join(folder, String(name))).size)
  return sizes.reduce((sum, size) => sum + size, 0) / 1024
}
