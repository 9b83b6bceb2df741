/**
 * Tests, with generated requests, that no request crashes the server, returns a 5xx status or uses too much
 * CPU time or memory.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runCommandInProcess } from '../support/command.ts'
import { type HostileRequest, toBytes } from '../support/hostile-http.ts'
import { type Credential, hostileRequest, listCalls, listEveryCall } from '../support/hostile-requests.ts'
import { createResources } from '../support/hostile-resources.ts'
import { callServer, makeFolder, type RunningServer, startServer } from '../support/process.ts'
import { type Cost, measureCost } from '../support/process-cost.ts'

const seed = Number(process.env.PARLEY_TEST_SEED ?? 20_261_122)
const runMs = Number(process.env.PARLEY_TEST_SECONDS ?? 45) * 1000
const unlimited = {
  PARLEY_RATE_LIMIT_PARENT: '0',
  PARLEY_RATE_LIMIT_AGENT: '0',
  PARLEY_RATE_LIMIT_AGENT_ADDRESS: '0',
  PARLEY_RATE_LIMIT_AUTH_FAILURES: '0',
}
const mostCpuMs = 100
const mostMemoryMb = 50
/**
 * Maximum wait for a response to end, in milliseconds. Rejected requests end sooner, and event streams do not
 * end.
 */
const streamMs = 1_500

/**
 * Sends a request on its own connection; returns its status, or undefined if the connection closed without
 * one.
 */
async function send(url: string, bytes: Buffer, { framing }: HostileRequest): Promise<number | undefined> {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen: true })
  let answer = ''
  socket.setEncoding('latin1').on('data', (text) => {
    if (answer.length < 1_000) answer += text
  })
  socket.on('error', () => {})
  const ended = Promise.race([once(socket, 'end'), once(socket, 'close')]).catch(() => {})
  socket.write(bytes)
  if (framing === 'half-closed') socket.end()
  if (framing === 'reset') socket.resetAndDestroy()
  await Promise.race([ended, sleep(streamMs)])
  socket.destroy()
  const [, status] = /^HTTP\/1\.1 (\d{3})/.exec(answer.replace(/^HTTP\/1\.1 100 .*?\r\n\r\n/, '')) ?? []
  return status === undefined ? undefined : Number(status)
}

/** Requests whose bodies arrive in tiny chunks, for routes that reject them without reading the body. */
const knownRequests = ['/docs', '/v1/chat/completions', '/trpc/chat.stream', '/v1/files', '/upload'].map(
  (target): HostileRequest => ({
    calls: [],
    label: 'known',
    method: 'POST',
    target,
    headers: [],
    body: () => Buffer.alloc(1_000_000, 'x'),
    framing: 'tiny chunks',
  }),
)

function median(costs: readonly Cost[], of: keyof Cost): number {
  return costs.map((cost) => cost[of]).sort((a, b) => a - b)[Math.floor(costs.length / 2)] as number
}

/** Repeats a request that costs too much, so that a garbage collection does not count. */
async function findCost(server: RunningServer, sendOnce: () => Promise<unknown>): Promise<Cost> {
  const costs = [await measure()]
  const isOver = () => median(costs, 'cpuMs') > mostCpuMs || median(costs, 'memoryMb') > mostMemoryMb
  while (isOver() && costs.length < 5) costs.push(await measure())
  return { cpuMs: median(costs, 'cpuMs'), memoryMb: median(costs, 'memoryMb') }

  function measure(): Promise<Cost> {
    return measureCost(server.pid, async () => {
      await sendOnce()
      // The server answers this request after its work for the request whose client has disconnected.
      await callServer(server.url, 'GET', '/healthz')
    })
  }
}

const batchSize = 100
/** Requests may delete the resources, so the test creates new ones after this many requests. */
const resourceRequests = 50

interface Generated {
  readonly credential: Credential
  readonly request: HostileRequest
}

/** Generates three requests to each operation with each credential that it accepts, and without one. */
function* generateForEveryOperation(): Iterable<Generated> {
  yield* knownRequests.map((request) => ({ credential: 'none' as const, request }))
  for (const [index, { credential, request }] of listEveryCall().entries())
    yield* fc.sample(request, { seed: seed + index, numRuns: 3 }).map((one) => ({ credential, request: one }))
}

/**
 * Generates requests with their credentials, in batches, because generating them one by one would take
 * longer.
 */
function* generate(): Iterable<Generated> {
  const generated = fc
    .constantFrom<Credential>('none', 'agent', 'agent', 'parent')
    .chain((credential) => hostileRequest(credential).map((request) => ({ credential, request })))
  for (let batch = 0; ; batch++) yield* fc.sample(generated, { seed: seed + batch, numRuns: batchSize })
}

/** Describes a violation; returns undefined for an acceptable response. */
function judge(credential: Credential, status: number | undefined, cost: Cost): string | undefined {
  const { cpuMs, memoryMb } = cost
  const isCostly = credential !== 'parent' && (cpuMs > mostCpuMs || memoryMb > mostMemoryMb)
  if ((status ?? 0) < 500 && !isCostly) return undefined
  return `status ${status}, ${Math.round(cpuMs)} ms, ${Math.round(memoryMb)} MB`
}

test('no request to any operation crashes the server, returns a 5xx status or uses too much CPU or memory', async () => {
  const folder = await makeFolder()
  const server = await startServer({ folder, env: unlimited })
  const manager = await runCommandInProcess(['keys', 'create', '--name', 'a', '--manage-keys'], { folder })
  const parent = manager.stdout.trim()
  const violations: string[] = []
  const called = new Set<string>()
  let resources = await createResources(server, parent)
  let sent = 0
  const check = async ({ credential, request }: Generated) => {
    if (sent++ % resourceRequests === resourceRequests - 1) resources = await createResources(server, parent)
    const keys = { none: undefined, agent: resources.agentKey, parent }
    const bytes = toBytes(request, keys[credential], resources)
    let status: number | undefined
    const cost = await findCost(server, async () => {
      status = await send(server.url, bytes, request)
    })
    if (status !== undefined) for (const call of request.calls) called.add(call)
    const violation = judge(credential, status, cost)
    const { method, target, framing, label } = request
    const text = `${method} ${target.slice(0, 100)} (${credential}, ${framing}): ${label.slice(0, 300)}`
    if (violation !== undefined) violations.push(`${violation}: ${text}`)
  }
  const isRunning = () => server.child.exitCode === null && server.child.signalCode === null
  for (const generated of generateForEveryOperation()) if (isRunning()) await check(generated)
  const until = performance.now() + runMs
  for (const generated of generate()) {
    if (performance.now() > until || !isRunning()) break
    await check(generated)
  }
  expect({ seed, violations }).toEqual({ seed, violations: [] })
  expect([...called].toSorted()).toEqual(listCalls().toSorted())
  expect((await server.stop()).code).toBe(0)
}, 600_000)
