/**
 * Measures how much later a reader on another replica receives the events of a stored turn than the turn's
 * own client.
 */
import { randomBytes } from 'node:crypto'
import { forgeKey } from '../support/forge-key.ts'
import { query, startPostgres } from '../support/postgres.ts'
import { BenchFailure } from './connection.ts'
import type { Server } from './processes.ts'
import { type Row, toRow } from './report.ts'
import type { BenchSetup } from './setup.ts'
import { CHAT_PATH, createStoringAgent, turnBody } from './stored-turns.ts'

const STREAMS = 8
const CHUNKS = 60
const INTERVAL_MS = 50
const SHARE = 0.95

export async function measureReplicaLag(setup: BenchSetup): Promise<Row[]> {
  const postgres = await startPostgres()
  const servers: Server[] = []
  try {
    await query(postgres.urlOf('postgres'), 'create database replicas')
    const parentKey = forgeKey('svc_', randomBytes(55).toString('hex').slice(0, 55))
    const env = {
      DATABASE_URL: postgres.urlOf('replicas'),
      PARLEY_SECRET: 'the secret that both replicas of the benchmark share',
      PARLEY_PARENT_KEY: parentKey,
    }
    for (let replica = 0; replica < 2; replica++) servers.push(await setup.startOursEmpty(env))
    const [own, other] = servers as [Server, Server]
    const key = await createStoringAgent(own, parentKey)
    await setup.plan({ chunks: CHUNKS, chunksPerWrite: 1, intervalMs: INTERVAL_MS })
    const lags = await Promise.all(Array.from({ length: STREAMS }, () => measureLags(own, other, key)))
    const sorted = lags.flat().toSorted((one, another) => one - another)
    const name = 'reader on another replica: p95 ms after the first reader'
    return [toRow(name, [Number.NaN], [sorted[Math.floor(sorted.length * SHARE)] as number], { value: 400 })]
  } finally {
    for (const server of servers) await server.stop()
    await postgres.remove()
  }
}

/** Runs one turn on `own`, reads it on `other` too, and returns the delay of each event in milliseconds. */
async function measureLags(own: Server, other: Server, key: string): Promise<number[]> {
  const first = Promise.withResolvers<string>()
  const reading = readArrivals(own, key, {}, (id) => first.resolve(id))
  reading.catch((error) => first.reject(error))
  const id = await first.promise
  const startedMs = performance.now()
  const there = await readArrivals(other, key, { 'last-event-id': id })
  const here = await reading
  // Earlier events are replayed.
  const later = [...here].filter(([, ms]) => ms > startedMs)
  if (later.length < CHUNKS / 2) throw new BenchFailure(`Only ${later.length} events arrived.`)
  return later.map(([number, ms]) => (there.get(number) ?? Number.NaN) - ms)
}

/** Reads a stream; returns the time of each event by its number. */
async function readArrivals(
  { port }: Server,
  key: string,
  headers: Readonly<Record<string, string>>,
  onFirst: (id: string) => void = () => {},
): Promise<Map<number, number>> {
  const response = await fetch(`http://127.0.0.1:${port}${CHAT_PATH}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: turnBody(true),
  })
  const arrivals = new Map<number, number>()
  let rest = ''
  for await (const text of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const nowMs = performance.now()
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const [, id, number] = /^id: (\w+\.(\d+))$/.exec(line) ?? []
      if (id === undefined) continue
      if (arrivals.size === 0) onFirst(id)
      arrivals.set(Number(number), nowMs)
    }
  }
  if (arrivals.size === 0) throw new BenchFailure(`The stream has no event ids, status ${response.status}.`)
  return arrivals
}
