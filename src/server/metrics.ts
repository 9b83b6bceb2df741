/** `/metrics`: what it contains, and who may read it. */
import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import ipaddr from 'ipaddr.js'
import { countArtifactWork } from '../artifacts/maintenance.ts'
import type { Clock } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { within } from '../lib/timeout.ts'
import { createTtlCache } from '../lib/ttl-cache.ts'
import { rejectCredentials } from '../operations/access.ts'
import type { HttpCall } from '../operations/pipeline.ts'
import type { StreamSlots } from '../replicas/stream-limiter.ts'
import { type Looked, lookUp, type Meter } from '../telemetry/counters.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { ProcessMeters } from '../telemetry/process-metrics.ts'
import {
  type GatherReadings,
  readMeters,
  readWorkers,
  renderReadings,
  type Scraped,
} from '../telemetry/prometheus.ts'
import type { Deps } from './dependencies.ts'

interface PoolState {
  readonly busy: number
  readonly idle: number
  readonly waiting: number
}

interface CountingOptions {
  readonly version: string
  /** Undefined where there is no pool. */
  readonly readPool: (() => PoolState) | undefined
  /** Undefined where there is one process only. */
  readonly gather: GatherReadings | undefined
}

export function createCounting(deps: Deps, options: CountingOptions) {
  const { clock, metrics } = deps
  const { gather } = options
  const ofProcess = new ProcessMeters(clock)
  const meters = [
    ...metrics.meters,
    ...createStateMeters(deps, options),
    ...createStoredMeters(() => countArtifactWork(deps), clock),
    ...ofProcess.meters,
  ]
  const read = () => readMeters(meters)
  return {
    /** The metrics of this process. */
    read,
    /** The metrics of all processes, as text. */
    async scrape(): Promise<Scraped> {
      if (gather === undefined) return renderReadings({ processes: [await read()] })
      const gathered = await gather().catch((cause: unknown) => {
        throw new ServiceError('service_unavailable', 'The processes of this service could not be asked.', {
          cause,
        })
      })
      return renderReadings({ processes: [...gathered.processes, await readWorkers(gathered)] })
    },
    close: () => ofProcess.close(),
  }
}

type StateDeps = Pick<Deps, 'metrics' | 'breakers' | 'models' | 'shared' | 'tools'>

function createStateMeters(deps: StateDeps, { version, readPool }: CountingOptions): Meter[] {
  const { models, shared, tools } = deps
  return [
    lookUp(
      { name: 'parley_build_info', help: 'Always 1; the labels say what runs.' },
      () => [[{ version, node: process.versions.node }, 1]],
      { aggregator: 'first' },
    ),
    lookUp({ name: 'parley_backend_up', help: 'Whether the backend has told its models.' }, () =>
      toLooked('provider', models.health()),
    ),
    lookUp({ name: 'parley_breaker_resting', help: 'Whether the model rests after failures.' }, () =>
      countOpenBreakers(deps),
    ),
    lookUp({ name: 'parley_mcp_server_up', help: 'Whether the MCP server is connected.' }, () =>
      toLooked('server', tools.health()),
    ),
    lookUp({ name: 'parley_shared_state_up', help: 'Whether what replicas share can be reached.' }, () =>
      toLooked('store', shared.health()),
    ),
    ...(readPool === undefined ? [] : listPoolMeters(readPool)),
  ]
}

function listPoolMeters(readPool: () => PoolState): Meter[] {
  return [
    lookUp({ name: 'parley_database_connections', help: 'Connections of the pool.' }, () => {
      const { busy, idle } = readPool()
      return [
        [{ state: 'busy' }, busy],
        [{ state: 'idle' }, idle],
      ]
    }),
    lookUp({ name: 'parley_database_waiting', help: 'Statements that wait for a connection.' }, () => [
      [{}, readPool().waiting],
    ]),
  ]
}

function toLooked(label: string, states: Readonly<Record<string, 'up' | 'down'>>): Looked[] {
  return Object.entries(states).map(([name, state]) => [{ [label]: name }, state === 'up' ? 1 : 0])
}

/** Models that no backend lists are counted together. */
function countOpenBreakers({ breakers, metrics }: StateDeps): Looked[] {
  const open = new Map<string, { provider: string; model: string; count: number }>()
  for (const { provider, model, isOpen } of breakers.list()) {
    const name = metrics.models.nameOf(provider, model)
    const known = open.get(`${provider}/${name}`) ?? { provider, model: name, count: 0 }
    known.count += isOpen ? 1 : 0
    open.set(`${provider}/${name}`, known)
  }
  return [...open.values()].map(({ provider, model, count }) => [{ provider, model }, count])
}

/** As long as `/readyz` waits. */
const COUNT_TIMEOUT_MS = 500
const COUNTS_CACHED_MS = 5_000

interface StoredCounts {
  readonly openUploads: number
  readonly waitingJobs: Readonly<Record<string, number>>
}

/** Metrics of what `count` finds; omitted when it does not answer in time. */
function createStoredMeters(count: () => Promise<StoredCounts>, clock: Clock): Meter[] {
  const cache = createTtlCache<StoredCounts>(clock, { max: 1, keepMs: () => COUNTS_CACHED_MS })
  let loading: Promise<StoredCounts> | undefined

  function load(): Promise<StoredCounts> {
    loading ??= count().finally(() => {
      loading = undefined
    })
    return loading
  }
  const read = () => within(COUNT_TIMEOUT_MS, cache.get('counts', load))

  return [
    lookUp(
      { name: 'parley_uploads_open', help: 'Uploads that are not complete, in the whole installation.' },
      async () => [[{}, (await read()).openUploads]],
      { aggregator: 'max' },
    ),
    lookUp(
      { name: 'parley_jobs_waiting', help: 'Jobs nobody has taken yet, in the whole installation.' },
      async () => Object.entries((await read()).waitingJobs).map(([kind, jobs]): Looked => [{ kind }, jobs]),
      { aggregator: 'max' },
    ),
  ]
}

export function countStreams(slots: StreamSlots, metrics: Metrics): StreamSlots {
  return {
    async take(owners) {
      try {
        const giveBack = await slots.take(owners)
        metrics.openStreams.add()
        let isOpen = true
        return () => {
          if (isOpen) metrics.openStreams.add(-1)
          isOpen = false
          giveBack()
        }
      } catch (failure) {
        metrics.callLimited('streams')
        throw failure
      }
    },
  }
}

/** The headers that proxies add. */
const forwardingHeader =
  /^(forwarded|via|x-real-ip|x-client-ip|true-client-ip|cf-connecting-ip|x-forwarded-.+)$/

const metricsMessages = {
  missing:
    'The metrics are for programs on this machine, and for `Authorization: Bearer <PARLEY_METRICS_TOKEN>`.',
  invalid: 'This is not the token of the metrics.',
}

/** Accepts the operator's token, and programs on this machine that send no token. A wrong token is rejected wherever it comes from. */
export async function assertMayReadMetrics({ request, context }: HttpCall): Promise<void> {
  const { metricsToken } = context.deps.config
  const { bearer } = context.metadata
  const isAllowed =
    bearer === undefined
      ? isFromThisMachine(request)
      : metricsToken !== undefined && isSame(bearer, metricsToken)
  if (!isAllowed) await rejectCredentials(context, metricsMessages)
}

function isFromThisMachine({ socket, headers }: IncomingMessage): boolean {
  const address = socket.remoteAddress ?? ''
  if (!ipaddr.isValid(address) || ipaddr.process(address).range() !== 'loopback') return false
  return !Object.keys(headers).some((name) => forwardingHeader.test(name))
}

/** Compares digests, which have the same length, so that the comparison takes the same time for every token. */
function isSame(one: string, other: string): boolean {
  return timingSafeEqual(hash('sha256', one, 'buffer'), hash('sha256', other, 'buffer'))
}
