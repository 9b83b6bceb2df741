/** Serves `/metrics` and controls access to it. */
import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import ipaddr from 'ipaddr.js'
import { countArtifactWork } from '../artifacts/maintenance.ts'
import type { Config } from '../config/config.ts'
import type { PoolUse } from '../db/database.ts'
import { ServiceError } from '../lib/errors.ts'
import { within } from '../lib/timeout.ts'
import { createTtlCache } from '../lib/ttl-cache.ts'
import { rejectCredentials } from '../operations/access.ts'
import type { HttpCall } from '../operations/pipeline.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { registerProcessMetrics } from '../telemetry/process-metrics.ts'
import {
  type CollectFromWorkers,
  collectMetrics,
  collectWorkerCounts,
  registerGauge,
  renderMetrics,
  type Sample,
  type Scraped,
} from '../telemetry/prometheus.ts'
import type { Deps } from './dependencies.ts'

interface CountingOptions {
  readonly version: string
  readonly readPool: (() => PoolUse) | undefined
  /** Undefined if there is only one process. */
  readonly collectFromWorkers: CollectFromWorkers | undefined
}

export function createCounting(deps: Deps, options: CountingOptions) {
  const { clock, metrics } = deps
  const { registry } = metrics
  const { collectFromWorkers } = options
  registerStateMetrics(deps, options)
  registerStoredMetrics(deps)
  registerTurnMetrics(deps)
  const close = registerProcessMetrics(registry, clock)
  const collect = () => collectMetrics(registry)
  return {
    collect,
    /**
     * Returns the metrics of all processes as text. @throws ServiceError `service_unavailable` if the workers
     * do not respond.
     */
    async scrape(): Promise<Scraped> {
      if (collectFromWorkers === undefined) return renderMetrics({ processes: [await collect()] })
      const workers = await collectFromWorkers().catch((cause: unknown) => {
        throw new ServiceError('service_unavailable', 'The worker processes did not respond.', {
          cause,
        })
      })
      return renderMetrics({ processes: [...workers.processes, await collectWorkerCounts(workers)] })
    },
    close,
  }
}

type StateDeps = Pick<Deps, 'metrics' | 'breakers' | 'models' | 'shared' | 'tools'>

function registerStateMetrics(deps: StateDeps, { version, readPool }: CountingOptions): void {
  const { models, shared, tools } = deps
  const { registry } = deps.metrics
  registerGauge(
    registry,
    {
      name: 'parley_build_info',
      help: 'Always 1; the labels contain the versions of Parley and Node.',
      labelNames: ['version', 'node'],
      aggregator: 'first',
    },
    () => [[{ version, node: process.versions.node }, 1]],
  )
  registerHealth(
    registry,
    'parley_backend_up',
    "Whether the last request for the provider's model list succeeded.",
    'provider',
    () => models.health(),
  )
  registerGauge(
    registry,
    {
      name: 'parley_breaker_resting',
      help: "Number of the model's open circuit breakers.",
      labelNames: ['provider', 'model'],
    },
    () => countOpenBreakers(deps),
  )
  registerHealth(registry, 'parley_mcp_server_up', 'Whether the MCP server is connected.', 'server', () =>
    tools.health(),
  )
  const sharedHelp = 'Whether the coordination store is available.'
  registerHealth(registry, 'parley_shared_state_up', sharedHelp, 'store', () => shared.health())
  if (readPool !== undefined) registerPoolMetrics(registry, readPool)
}

function registerPoolMetrics(registry: Metrics['registry'], readPool: () => PoolUse): void {
  registerGauge(
    registry,
    {
      name: 'parley_database_connections',
      help: 'Connections in the database pool.',
      labelNames: ['state'],
    },
    () => {
      const { busy, idle } = readPool()
      return [
        [{ state: 'busy' }, busy],
        [{ state: 'idle' }, idle],
      ]
    },
  )
  registerGauge(
    registry,
    { name: 'parley_database_waiting', help: 'Statements waiting for a database connection.' },
    () => [[{}, readPool().waiting]],
  )
}

function registerHealth(
  registry: Metrics['registry'],
  name: string,
  help: string,
  label: string,
  read: () => Readonly<Record<string, 'up' | 'down'>>,
): void {
  registerGauge(registry, { name, help, labelNames: [label] }, () =>
    Object.entries(read()).map(([one, state]) => [{ [label]: one }, state === 'up' ? 1 : 0]),
  )
}

/** Counts open circuit breakers. Models that no provider lists share one label. */
function countOpenBreakers({ breakers, metrics }: StateDeps): Sample[] {
  const open = new Map<string, { provider: string; model: string; count: number }>()
  for (const { provider, model, isOpen } of breakers.list()) {
    const name = metrics.models.nameOf(provider, model)
    const known = open.get(`${provider}/${name}`) ?? { provider, model: name, count: 0 }
    known.count += isOpen ? 1 : 0
    open.set(`${provider}/${name}`, known)
  }
  return [...open.values()].map(({ provider, model, count }) => [{ provider, model }, count])
}

/** The same timeout as for `/readyz`. */
const COUNT_TIMEOUT_MS = 500
const COUNTS_CACHED_MS = 5_000

/**
 * Counts uploads, jobs and waiting conversations in the database. A scrape omits these gauges if the database
 * does not respond in time.
 */
function registerStoredMetrics({ clock, db, conversations, metrics: { registry } }: Deps): void {
  const count = async () => ({
    ...(await countArtifactWork({ db })),
    waitingConversations: await conversations.handover.countWaiting(),
  })
  type StoredCounts = Awaited<ReturnType<typeof count>>
  const cache = createTtlCache<StoredCounts>(clock, { max: 1, keepMs: () => COUNTS_CACHED_MS })
  let loading: Promise<StoredCounts> | undefined

  function load(): Promise<StoredCounts> {
    loading ??= count().finally(() => {
      loading = undefined
    })
    return loading
  }
  const read = () => within(COUNT_TIMEOUT_MS, Promise.resolve(cache.get('counts', load)))

  registerGauge(
    registry,
    {
      name: 'parley_uploads_open',
      help: 'Incomplete uploads in the whole installation.',
      aggregator: 'max',
    },
    async () => [[{}, (await read()).openUploads]],
  )
  registerGauge(
    registry,
    {
      name: 'parley_jobs_waiting',
      help: 'Jobs waiting for a worker, in the whole installation.',
      labelNames: ['kind'],
      aggregator: 'max',
    },
    async () => Object.entries((await read()).waitingJobs).map(([kind, jobs]): Sample => [{ kind }, jobs]),
  )
  registerGauge(
    registry,
    {
      name: 'parley_conversations_waiting',
      help: 'Conversations waiting for a person, in the whole installation.',
      aggregator: 'max',
    },
    async () => [[{}, (await read()).waitingConversations]],
  )
}

function registerTurnMetrics({ conversations, metrics: { registry } }: Deps): void {
  const register = (name: string, help: string, read: (state: TurnState) => number) =>
    registerGauge(registry, { name, help }, () => [[{}, read(conversations.readState())]])
  register('parley_turns_running', 'Running turns that the server stores.', ({ running }) => running)
  register('parley_turn_events_waiting', 'Unstored events of running turns.', ({ waiting }) => waiting.events)
  register(
    'parley_turn_bytes_waiting',
    'Size of the unstored events of running turns, in bytes.',
    ({ waiting }) => waiting.bytes,
  )
  registerGauge(
    registry,
    {
      name: 'parley_conversation_store_up',
      help: 'Whether the last turn could be stored.',
      aggregator: 'min',
    },
    () => [[{}, conversations.readState().isStoreUp ? 1 : 0]],
  )
}

type TurnState = ReturnType<Deps['conversations']['readState']>

const forwardingHeader =
  /^(forwarded|via|x-real-ip|x-client-ip|true-client-ip|cf-connecting-ip|x-forwarded-.+)$/

const metricsMessages = {
  missing:
    'Metrics require `Authorization: Bearer <PARLEY_METRICS_TOKEN>`, or a request to localhost from this machine.',
  invalid: 'The metrics token is invalid.',
}

/**
 * Accepts the operator's token, or a request from this machine without a token; always rejects a wrong token.
 */
export async function assertMayReadMetrics({ request, context }: HttpCall): Promise<void> {
  const { metricsToken } = context.deps.config
  const { bearer } = context.metadata
  const isAllowed =
    bearer === undefined
      ? isFromThisMachine(request) && isTrustedHost(request, context.deps.config)
      : metricsToken !== undefined && isSame(bearer, metricsToken)
  if (!isAllowed) await rejectCredentials(context, metricsMessages)
}

function isFromThisMachine({ socket, headers }: IncomingMessage): boolean {
  const address = socket.remoteAddress ?? ''
  if (!ipaddr.isValid(address) || ipaddr.process(address).range() !== 'loopback') return false
  return !Object.keys(headers).some((name) => forwardingHeader.test(name))
}

/**
 * Prevents DNS rebinding, in which a page's own host name resolves to this machine. The names in
 * `PARLEY_ALLOWED_HOSTS` were checked earlier.
 */
function isTrustedHost({ headers }: IncomingMessage, { server }: Pick<Config, 'server'>): boolean {
  if (server.allowedHosts.length > 0) return true
  const url = URL.parse(`http://${headers.host}`)
  const name = url?.hostname.replace(/^\[(.*)\]$/, '$1') ?? ''
  return name === 'localhost' || name.endsWith('.localhost') || ipaddr.isValid(name)
}

/** Compares digests, because a constant-time comparison requires equal lengths. */
function isSame(one: string, other: string): boolean {
  return timingSafeEqual(hash('sha256', one, 'buffer'), hash('sha256', other, 'buffer'))
}
