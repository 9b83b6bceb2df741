/** Puts the service together for whoever runs it: the `serve` command, a test, or a host that embeds it. */
import { randomBytes } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'
import { type Logger, pino } from 'pino'
import { createAgentDirectory } from './agents/directory.ts'
import { createApp, type Health } from './app.ts'
import type { ChatBackend } from './chat/backend.ts'
import { createGatewayBackend } from './chat/backends/gateway.ts'
import { createMockBackend } from './chat/backends/mock.ts'
import type { Config } from './config.ts'
import { loadOrCreateSecret } from './db/data-directory.ts'
import { type OpenedDatabase, openDatabase } from './db/open.ts'
import { type Clock, createPositions, type Deps, type Random } from './deps.ts'
import { closeGracefully, listen, urlOf } from './http-server.ts'
import { createKeyDirectory } from './keys/directory.ts'
import { newId } from './keys/format.ts'
import { createParentKey, registerParentKey } from './keys/keys.ts'
import { createSealer } from './keys/seal.ts'
import { hasParentKey } from './keys/store.ts'
import { createModelCatalogue } from './models/catalogue.ts'
import { renderOpenapi } from './rest/openapi.ts'
import { createMemoryRateLimiter } from './rpc/rate-limit.ts'
import { createStreamSlots } from './rpc/stream-slots.ts'
import { createUsageBooks } from './usage/books.ts'
import { startTending } from './usage/retention.ts'

/** What a host may bring along; everything but the configuration has a default. */
export interface ServiceOptions {
  readonly config: Config
  readonly clock?: Clock
  readonly random?: Random
  readonly log?: Logger
}

/** A running service. */
export interface Service {
  /** Where it answers, such as `http://127.0.0.1:3000`. */
  readonly url: string
  /** The first parent key, when this start created it: shown this once. */
  readonly firstParentKey: string | undefined
  readonly deps: Deps
  /** Stops accepting, lets running answers end, then ends them. Safe to call twice. */
  close(): Promise<void>
}

const RECORD_USE_EVERY_MS = 10_000
/** Security: 2.12 (`/readyz`). */
const READY_WITHIN_MS = 500

/** The machine's own clocks. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  wait: (ms, signal) => wait(ms, undefined, signal === undefined ? {} : { signal }),
}

/**
 * Opens the data, starts the backends and listens.
 * @throws StartupError when the data directory, the database or the port cannot be used.
 */
export async function createService(options: ServiceOptions): Promise<Service> {
  const opened = await openDatabase({ dataDir: options.config.dataDir, role: 'server' })
  try {
    return await startService(options, opened)
  } catch (error) {
    await opened.close()
    throw error
  }
}

async function startService(options: ServiceOptions, opened: OpenedDatabase): Promise<Service> {
  const { config } = options
  const deps = await createDeps(options, opened)
  let isDraining = false
  const app = createApp({
    deps,
    openapi: Buffer.from(JSON.stringify(renderOpenapi())),
    health: { read: () => readHealth(deps, isDraining) },
  })
  const [server] = await Promise.all([
    listen(app.listener, config.server.host, config.server.port),
    deps.models.ready(),
  ])
  // After the port is ours: a key that was never shown would be lost.
  const firstParentKey = await ensureParentKey(deps)
  const recordUse = setInterval(() => void recordKeyUse(deps), RECORD_USE_EVERY_MS).unref()
  const stopTending = startTending(deps)

  async function stop(): Promise<void> {
    isDraining = true
    await closeGracefully(server, config.timings.shutdownMs, app.endStreams)
    clearInterval(recordUse)
    deps.models.close()
    await Promise.all(deps.backends.map((backend) => backend.close()))
    await recordKeyUse(deps)
    await Promise.all([deps.usage.close(), stopTending()])
    await opened.close()
  }
  let stopping: Promise<void> | undefined
  return {
    url: urlOf(server),
    firstParentKey,
    deps,
    close() {
      stopping ??= stop()
      return stopping
    },
  }
}

/** The parts that need no port: also what commands beside a server work with. */
export async function createDeps(options: ServiceOptions, { db }: OpenedDatabase): Promise<Deps> {
  const { config, clock = systemClock, random = randomBytes, log = createLog(config) } = options
  const secret = config.secret ?? (await loadOrCreateSecret(config.dataDir, random))
  const backends = [createBackend(config, clock, random)]
  return {
    config,
    db,
    clock,
    random,
    log,
    nextPosition: createPositions(clock),
    sealer: createSealer(secret, random),
    keys: createKeyDirectory(db, clock),
    agents: createAgentDirectory(db, clock),
    backends,
    models: createModelCatalogue(backends, { config, log }),
    limiter: createMemoryRateLimiter(clock),
    streams: createStreamSlots(),
    usage: createUsageBooks({ config, db, clock, random, log }),
  }
}

function createBackend({ backend, timings }: Config, clock: Clock, random: Random): ChatBackend {
  if (backend.kind === 'mock') {
    return createMockBackend({ clock, newId: () => newId('', 24, random), wait: clock.wait })
  }
  return createGatewayBackend({
    name: backend.kind,
    url: backend.url,
    ...(backend.apiKey === undefined ? {} : { apiKey: backend.apiKey }),
    timings: {
      connectMs: timings.backendConnectMs,
      firstByteMs: timings.backendFirstByteMs,
      idleMs: timings.backendIdleMs,
    },
  })
}

/** Registers the operator's key, or makes the first one. Decision: 2 (First start). */
async function ensureParentKey(deps: Deps): Promise<string | undefined> {
  if (deps.config.parentKey !== undefined) await registerParentKey(deps, deps.config.parentKey)
  if (await hasParentKey(deps.db)) return undefined
  return (await createParentKey(deps, 'first')).text
}

async function recordKeyUse({ keys, log }: Deps): Promise<void> {
  await keys.recordUse().catch((error) => log.warn({ err: error }, 'the use of keys could not be recorded'))
}

/** A backend that is down degrades the service; a database that is down ends it. Decision: 3. */
async function readHealth({ db, models }: Deps, isDraining: boolean): ReturnType<Health['read']> {
  const isDatabaseUp = await answersInTime(hasParentKey(db))
  const backends = models.health()
  const isDegraded = Object.values(backends).includes('down')
  const isReady = isDatabaseUp && !isDraining
  const status = isDraining ? 'draining' : !isReady ? 'unavailable' : isDegraded ? 'degraded' : 'ready'
  return { isReady, report: { status, checks: { database: isDatabaseUp ? 'up' : 'down', backends } } }
}

async function answersInTime(query: Promise<unknown>): Promise<boolean> {
  const tooLate = new AbortController()
  const late = wait(READY_WITHIN_MS, false, { signal: tooLate.signal, ref: false }).catch(() => false)
  const answered = query.then(
    () => true,
    () => false,
  )
  const isInTime = await Promise.race([answered, late])
  tooLate.abort()
  return isInTime
}

/** Lines go to standard error: standard output is for what a person or a script asked for. */
function createLog({ logLevel }: Config): Logger {
  return pino({ level: logLevel, base: null }, pino.destination(2))
}
