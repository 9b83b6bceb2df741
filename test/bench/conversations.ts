/** Measures what storing costs: an agent's turns with and without `store: false` on the same server. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { BenchFailure } from './connection.ts'
import { runStreams } from './load.ts'
import type { Server } from './processes.ts'
import { type Row, toRow } from './report.ts'
import { agentYaml, post } from './requests.ts'
import { compare, median, type Outcome } from './rounds.ts'
import { type BenchSetup, limitMs } from './setup.ts'

const CHUNKS = 400
const PATH = '/v1/chat/completions'
const yaml = `${agentYaml}conversations:\n  keep: 30d\n`

/** The columns are `bare`: a turn that is not stored, and `ours`: a stored turn. */
export async function measureConversations(setup: BenchSetup): Promise<Row[]> {
  const server = await setup.startOursEmpty()
  try {
    const key = await createAgent(server)
    const speed = await measureSpeed(setup, server, key)
    const stored = await measureStored(setup, server, key)
    return [...speed, ...stored]
  } finally {
    await server.stop()
  }
}

async function createAgent({ port, printedKey }: Server): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/agents`, {
    method: 'POST',
    headers: { authorization: `Bearer ${await printedKey()}`, 'content-type': 'application/yaml' },
    body: yaml,
  })
  const text = await response.text()
  if (response.status !== 201) throw new BenchFailure(`The agent was not created: ${text}`)
  return (JSON.parse(text) as { agent_key: string }).agent_key
}

function bodyOf(isStored: boolean): string {
  const messages = [{ role: 'user', content: 'Which herbs stand a dry balcony?' }]
  return JSON.stringify({ messages, stream: true, store: isStored })
}

function microsPer(units: number, outcome: Outcome<unknown>): number[] {
  return outcome.cpuNs.map((cpuNs) => cpuNs / 1e3 / units)
}

async function measureSpeed(setup: BenchSetup, server: Server, key: string): Promise<Row[]> {
  const contestants = [false, true].map((isStored) => ({
    server,
    request: post(PATH, key, bodyOf(isStored)),
  }))
  const full = { connections: 50, streamsEach: 2, chunks: CHUNKS }
  await setup.plan({ chunks: CHUNKS, chunksPerWrite: 4, intervalMs: 0 })
  const [off, on] = await compare(contestants, setup.effort, ({ request }) =>
    runStreams({ ...full, port: server.port, request, limitMs }),
  )
  const single = { connections: 1, streamsEach: 100, chunks: 4 }
  await setup.plan({ chunks: single.chunks, chunksPerWrite: 1, intervalMs: 0 })
  const [firstOff, firstOn] = await compare(contestants, setup.effort, async ({ request }) =>
    median(await runStreams({ ...single, port: server.port, request, limitMs })),
  )
  if (!off || !on || !firstOff || !firstOn) return []
  const units = full.connections * full.streamsEach * CHUNKS
  const name = 'stored turn (bare: not stored)'
  return [
    toRow(`${name}: CPU µs a chunk`, microsPer(units, off), microsPer(units, on), { ratio: 1.5 }),
    toRow(`${name}: p50 ms to first token`, firstOff.results, firstOn.results, undefined),
  ]
}

/** Measures the stored bytes of a turn, and the CPU time of reading its events again. */
async function measureStored(setup: BenchSetup, server: Server, key: string): Promise<Row[]> {
  await setup.plan({ chunks: CHUNKS, chunksPerWrite: 4, intervalMs: 0 })
  const url = `http://127.0.0.1:${server.port}${PATH}`
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const first = await fetch(url, { method: 'POST', headers, body: bodyOf(true) })
  const id = /^id: (\S+)\.0\n/.exec(await first.text())?.[1]
  if (id === undefined) throw new BenchFailure('The stream has no event ids.')
  const turns = 400
  const request = post(PATH, key, bodyOf(true))
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
    post(PATH, key, '{}').toString().replace('\r\n\r\n', `\r\nlast-event-id: ${id}.0\r\n\r\n`),
  )
  const resumes = { connections: 4, streamsEach: 25, chunks: CHUNKS }
  const [read] = await compare([{ server }], setup.effort, () =>
    runStreams({ ...resumes, port: server.port, request: resume, limitMs }),
  )
  const cpuMs = microsPer(resumes.connections * resumes.streamsEach * 1e3, read as Outcome<unknown>)
  return [
    toRow('stored turn of 400 chunks: KB in the database', [Number.NaN], [kb], undefined),
    toRow('resume of 400 chunks: CPU ms', [Number.NaN], cpuMs, { value: 5 }),
  ]
}

/** The size of the file of stored turns; the benchmark's data directories have at most one. */
function storedKb(folder: string): number {
  const files = readdirSync(folder, { recursive: true }).filter((name) =>
    String(name).endsWith('conversations.db'),
  )
  const sizes = files.map((name) => statSync(join(folder, String(name))).size)
  return sizes.reduce((sum, size) => sum + size, 0) / 1024
}
