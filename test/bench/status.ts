/** Measures the rate of status requests during uploads at network speed. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { BenchFailure } from './connection.ts'
import { JsonSink, runLoops, runRequests } from './load.ts'
import type { Server } from './processes.ts'
import { type Row, toRow } from './report.ts'
import { compare, type Outcome } from './rounds.ts'
import { type BenchSetup, limitMs, withBoth } from './setup.ts'
import { block, toHead } from './transfers.ts'
import { type Begun, beginUpload, removeUpload, toPatchHead } from './uploads.ts'

const uploads = 4
const bytesPerSecond = 32_000_000
const seconds = 2
const sliceMs = 10
const connections = 16

interface Turn {
  readonly queriesPerSecond: number
  readonly p99Ms: number
  /** The throughput of the slowest upload. */
  readonly megabytesPerSecond: number
}

/** Measures status requests to an idle server and during uploads. */
export async function measureStatus(setup: BenchSetup): Promise<Row[]> {
  const effort = { ...setup.effort, warmUps: 1, rounds: 7 }
  return withBoth(setup, async (bare, ours) => {
    const alone = await measureAlone(setup, [bare, ours])
    const outcomes = await compare([{ server: bare }, { server: ours }], effort, ({ server }) =>
      askWhileUploading(setup, server),
    )
    return [alone, ...toRows(outcomes as [Outcome<Turn>, Outcome<Turn>])]
  })
}

/** Measures the CPU time of status requests on an idle server. */
async function measureAlone(
  { parentKey: key, effort }: BenchSetup,
  servers: readonly Server[],
): Promise<Row> {
  const count = 2_000
  const contestants = await Promise.all(
    servers.map(async (server) => {
      const upload = await beginUpload(server, key, 1)
      return { server, upload, request: toStatusRequest(upload, key) }
    }),
  )
  const [bare = [], ours = []] = (
    await compare(contestants, effort, ({ server: { port }, request }) =>
      runRequests({ port, request, connections, count, isRight: isUploading, limitMs }),
    )
  ).map(({ cpuNs }) => cpuNs.map((ns) => ns / 1e3 / count))
  for (const { server, upload } of contestants) await removeUpload(server, key, upload)
  return toRow('status: CPU ms per 1,000', bare, ours, undefined)
}

function toRows([bare, ours]: readonly [Outcome<Turn>, Outcome<Turn>]): Row[] {
  const toFigures = (name: keyof Turn) => [bare, ours].map(({ results }) => results.map((turn) => turn[name]))
  const [bareRates = [], oursRates = []] = toFigures('queriesPerSecond')
  const [bareP99 = [], oursP99 = []] = toFigures('p99Ms')
  const [barePace = [], oursPace = []] = toFigures('megabytesPerSecond')
  const name = `status while ${uploads} uploads run`
  return [
    toRow(`${name}: queries/s`, bareRates, oursRates, { leastValue: 10_000 }),
    toRow(`${name}: p99 ms`, bareP99, oursP99, { value: 10 }),
    toRow(`${name}: MB/s of the slowest`, barePace, oursPace, { leastValue: 30 }),
  ]
}

async function askWhileUploading({ parentKey: key }: BenchSetup, server: Server): Promise<Turn> {
  const sizeBytes = bytesPerSecond * seconds
  const begun = await Promise.all(Array.from({ length: uploads }, () => beginUpload(server, key, sizeBytes)))
  let isOver = false
  const sending = Promise.all(begun.map((upload) => sendPaced(server, key, upload, sizeBytes))).finally(
    () => {
      isOver = true
    },
  )
  const requests = begun.map((upload) => toStatusRequest(upload, key))
  const latenciesMs: number[] = []
  const elapsedMs = await runLoops({ port: server.port, connections, limitMs }, async (connection, index) => {
    const sink = new JsonSink(isUploading)
    for (let turn = index; !isOver; turn++) {
      const sentMs = performance.now()
      await connection.exchange(requests[turn % requests.length] as Buffer, sink)
      latenciesMs.push(performance.now() - sentMs)
    }
  })
  const slowestMs = Math.max(...(await sending))
  for (const upload of begun) await removeUpload(server, key, upload)
  latenciesMs.sort((one, other) => one - other)
  return {
    queriesPerSecond: (latenciesMs.length * 1e3) / elapsedMs,
    p99Ms: latenciesMs[Math.floor(latenciesMs.length * 0.99)] ?? Number.NaN,
    megabytesPerSecond: sizeBytes / 1e3 / slowestMs,
  }
}

function toStatusRequest({ id }: Begun, key: string): Buffer {
  return toHead('GET', `/artifacts/${id}/status`, key)
}

function isUploading(body: unknown): boolean {
  return (body as { state?: unknown }).state === 'uploading'
}

/** Sends an upload at `bytesPerSecond`; returns the milliseconds until the server has accepted it. */
async function sendPaced({ port }: Server, key: string, upload: Begun, sizeBytes: number): Promise<number> {
  const socket = connect({ port, host: '127.0.0.1' }).setNoDelay(true)
  await once(socket, 'connect')
  const startedMs = performance.now()
  socket.write(toPatchHead(upload, key, sizeBytes))
  let sentBytes = 0
  const timer = setInterval(() => {
    const due = Math.min(sizeBytes, ((performance.now() - startedMs) * bytesPerSecond) / 1e3)
    // Waits while the socket's buffer is full, because unsent data would fill this process's memory.
    while (due - sentBytes >= 1 && !socket.writableNeedDrain) {
      const from = sentBytes % block.length
      const piece = block.subarray(from, from + Math.min(block.length - from, Math.floor(due - sentBytes)))
      socket.write(piece)
      sentBytes += piece.length
    }
  }, sliceMs)
  try {
    const [answer] = await once(socket, 'data', { signal: AbortSignal.timeout(limitMs) })
    if (!String(answer).startsWith('HTTP/1.1 204 ')) throw new BenchFailure(`Refused: ${answer}`)
    return performance.now() - startedMs
  } finally {
    clearInterval(timer)
    socket.destroy()
  }
}
