/** Puts the service together for whoever runs it: the `serve` command, a test, or a host that embeds it. */
import { randomBytes } from 'node:crypto'
import type { RequestListener } from 'node:http'
import type { Logger } from 'pino'
import packageJson from '../package.json' with { type: 'json' }
import { createAgentDirectory } from './agents/directory.ts'
import { loadSealer, resealAgentKeys } from './agents/sealer.ts'
import { type AppOptions, createApp } from './app.ts'
import { createArtifactDesk } from './artifacts/desk.ts'
import { completeLeftOver, recoverUploads } from './artifacts/recovery.ts'
import { createArtifactSweeper } from './artifacts/sweep.ts'
import { createTokens } from './artifacts/tokens.ts'
import { serviceActor } from './audit/actor.ts'
import { createBackends } from './chat/backends/create.ts'
import { Breakers } from './chat/breaker.ts'
import type { Config } from './config.ts'
import { createUserDirectory } from './console/directory.ts'
import { loadConsole } from './console-page/assets.ts'
import { createConverter } from './conversion/conversion.ts'
import { type OpenedDatabase, openDatabase } from './db/open.ts'
import { type Clock, createPositions, type Deps, type Random } from './deps.ts'
import { loadWidget } from './embed/assets.ts'
import { createFileSweeper } from './files/sweep.ts'
import { createHealth } from './health.ts'
import { createDrain, listen, urlOf } from './http-server.ts'
import { createKeyDirectory } from './keys/directory.ts'
import { insertFirstKey, registerParentKey } from './keys/keys.ts'
import { hasParentKey } from './keys/store.ts'
import { createModelCatalogue } from './models/catalogue.ts'
import { createCounting } from './observability/counting.ts'
import { createLog } from './observability/log.ts'
import type { Reading } from './observability/meters.ts'
import { Metrics } from './observability/metrics.ts'
import type { GatherReadings } from './observability/scrape.ts'
import { countStreams } from './observability/streams.ts'
import type { Tracing } from './observability/tracing.ts'
import { renderOpenapi } from './rest/openapi.ts'
import { shareForgetting } from './shared-state/bus.ts'
import { openSharedState } from './shared-state/open.ts'
import type { Blobs } from './storage/blobs.ts'
import { openStoreFolder } from './storage/folder.ts'
import type { GrowingStore } from './storage/growing.ts'
import { getInstallationId, shareSecret } from './storage/installation.ts'
import { abandonedBefore, openBlobs, openUploadStore, type StoreDeps } from './storage/open.ts'
import { lockInstallation } from './storage/store.ts'
import { startSweeper } from './storage/sweeping.ts'
import { systemClock } from './system-clock.ts'
import { type HostTools, joinHooks, type OnUploadComplete, type ReadHooks, readHooks } from './tools/host.ts'
import { loadHostModule } from './tools/host-module.ts'
import { startMcpServers } from './tools/mcp/servers.ts'
import type { Toolbox } from './tools/tool.ts'
import { createToolbox } from './tools/toolbox.ts'
import { createUsageBooks } from './usage/books.ts'
import { startTending } from './usage/retention.ts'

/** What a host may bring along; everything but the configuration has a default. */
export interface ServiceOptions {
  readonly config: Config
  readonly clock?: Clock
  readonly random?: Random
  readonly log?: Logger
  /** Where the bytes of files are kept; closed with the service. */
  readonly fileBlobs?: Blobs
  /** Tools that run here when a model calls them; they win over those of the same name in the module of `PARLEY_HOOKS`. */
  readonly tools?: HostTools
  /** Told of each complete upload, instead of the module's. */
  readonly onUploadComplete?: OnUploadComplete
  /** Where the bytes of artifacts are kept; closed with the service. */
  readonly artifactStore?: GrowingStore
  /** Asks all processes of this service what they have counted, where there are several: `/metrics` tells their sums. */
  readonly gatherReadings?: GatherReadings
}

export type { CompletedUpload, UploadHooks } from './artifacts/completed-upload.ts'
export type { HostHooks, HostTool, HostTools, OnUploadComplete } from './tools/host.ts'

/** A running service. */
export interface Service {
  /** Where it answers, such as `http://127.0.0.1:3000`. */
  readonly url: string
  /** The first parent key, when this start created it: shown this once. */
  readonly firstParentKey: string | undefined
  readonly deps: Deps
  /** What this process has counted so far. */
  readReadings(): Promise<Reading[]>
  /** Stops accepting, lets running answers end, then ends them. Safe to call twice. */
  close(): Promise<void>
}

const RECORD_USE_EVERY_MS = 10_000

/**
 * Opens the data, starts the backends and listens.
 * @throws StartupError when the host's module or tools, the data directory, the database, the secret or the port cannot be used.
 */
export async function createService(options: ServiceOptions): Promise<Service> {
  const hooks = await gatherHooks(options)
  const { config, log = createLog(config) } = options
  const opened = await openDatabase({ ...config, role: 'server', log })
  let deps: Deps | undefined
  try {
    deps = await createDeps({ ...options, log }, opened, hooks)
    return await startService(deps, opened, options.gatherReadings)
  } catch (error) {
    // Whatever goes on would keep the process from its end.
    if (deps !== undefined) {
      await Promise.all([closeSources(deps), deps.fileBlobs.close(), deps.artifacts.close()])
      await deps.shared.close()
      await deps.tracing?.close()
    }
    await opened.close()
    throw error
  }
}

let pages: Promise<Pick<AppOptions, 'widget' | 'console'>> | undefined

/** What browsers load, read once however many services this process starts. */
function loadPages(): NonNullable<typeof pages> {
  pages ??= Promise.all([loadWidget(), loadConsole()])
    .then(([widget, console]) => ({ widget, console }))
    .catch((error) => {
      pages = undefined
      throw error
    })
  return pages
}

async function startService(
  deps: Deps,
  opened: OpenedDatabase,
  gather: GatherReadings | undefined,
): Promise<Service> {
  const { server: address, timings } = deps.config
  let isDraining = false
  let openapi: Buffer | undefined
  const readHealth = createHealth(deps)
  const counting = createCounting(deps, {
    version: packageJson.version,
    readPool: opened.postgres?.readPool,
    gather,
  })
  const app = createApp({
    deps,
    ...(await loadPages()),
    // Rendered for whoever asks first: a start has no use for it.
    get openapi() {
      openapi ??= Buffer.from(JSON.stringify(renderOpenapi()))
      return openapi
    },
    health: { read: () => readHealth(isDraining) },
    scrape: counting.scrape,
  })
  const listener: RequestListener = (request, response) => {
    // Its connection would wait for a next request, and hold the exit.
    if (isDraining) response.shouldKeepAlive = false
    app.listener(request, response)
  }
  // Beside other servers, what one leaves behind becomes free when its leases run out.
  if (opened.isOnlyServer) await recoverUploads(deps)
  const server = await listen(listener, address.host, address.port)
  const drain = createDrain(server)
  sayWhatIsMissing(deps)
  await deps.models.ready()
  // Last, with the port ours and nothing left to wait for: a key that was never shown would be lost.
  const firstParentKey = await ensureParentKey(deps).catch((error) => {
    server.close().closeAllConnections()
    throw error
  })
  const recordUse = setInterval(() => void recordKeyUse(deps), RECORD_USE_EVERY_MS).unref()
  const stopTending = startTending(deps)
  const stopSweeping = startSweeper(createFileSweeper(deps), 'files', deps)
  const { processing } = deps.artifacts
  const leftOver = Promise.all([completeLeftOver(deps), processing.start()]).catch((error) =>
    deps.log.warn({ err: error }, 'what was left over of uploads could not be completed'),
  )
  const stopSweepingArtifacts = startSweeper(createArtifactSweeper(deps), 'artifacts', deps)

  async function stop(): Promise<void> {
    isDraining = true
    const stopped = processing.close()
    await drain(timings.shutdownMs, app.endStreams)
    clearInterval(recordUse)
    counting.close()
    await closeSources(deps)
    await recordKeyUse(deps)
    await Promise.all([deps.usage.close(), stopTending(), stopSweeping(), stopSweepingArtifacts(), leftOver])
    await stopped
    await deps.artifacts.close()
    await deps.fileBlobs.close()
    await deps.shared.close()
    await opened.close()
    await deps.tracing?.close()
  }
  let stopping: Promise<void> | undefined
  return {
    url: urlOf(server),
    firstParentKey,
    deps,
    readReadings: counting.read,
    close() {
      stopping ??= stop()
      return stopping
    },
  }
}

/** Decision: 9 (Conversion). */
function sayWhatIsMissing({ converter: { programs }, log }: Deps): void {
  if (programs.ffmpeg !== undefined && programs.ffprobe !== undefined) return
  log.warn('there is no ffmpeg here: videos are served as they were uploaded (see docs/conversion.md)')
}

/** Lets go of everything that answers from elsewhere. */
async function closeSources({ models, backends, tools }: Deps): Promise<void> {
  models.close()
  await Promise.all([...backends.map((backend) => backend.close()), tools.close()])
}

/** What the host brings in its module and in its options. Decision: 9 (Host hooks). */
async function gatherHooks({ config, tools, onUploadComplete }: ServiceOptions): Promise<ReadHooks> {
  const given = readHooks({ tools, onUploadComplete }, 'createService')
  if (config.hooks === undefined) return given
  return joinHooks(given, await loadHostModule(config.hooks))
}

async function createDeps(
  options: ServiceOptions & { readonly log: Logger },
  { db, postgres, isOnlyServer }: OpenedDatabase,
  hooks: ReadHooks,
): Promise<Deps> {
  const { config, clock = systemClock, random = randomBytes, log } = options
  const sealer = await loadSealer(config, { db, random })
  if (!isOnlyServer) await shareSecret({ db, clock }, sealer)
  await resealAgentKeys({ db, sealer, log })
  const converter = await createConverter({ config, clock })
  // Before anything that goes on by itself: it may refuse to.
  const { fileBlobs, store, workFolder } = await openStores(options, { db, clock, log, isOnlyServer })
  const nextPosition = createPositions(clock)
  // Last of what can fail: whoever has no deps yet cannot close them.
  const backends = await createBackends(config, { clock, random })
  const models = createModelCatalogue(backends, { config, log })
  const metrics = new Metrics((provider, model) => models.find(`${provider}/${model}`) !== undefined)
  const tracing = await startTracing(config, log)
  const opened = await openSharedState(config, postgres, { db, clock, random, log })
  const shared = { ...opened, streams: countStreams(opened.streams, metrics) }
  const { bus } = shared
  const keys = shareForgetting(bus, 'keys', createKeyDirectory(db, clock))
  const users = createUserDirectory({ config, db, clock, random, nextPosition, keys })
  return {
    config,
    db,
    clock,
    random,
    log,
    metrics,
    tracing,
    nextPosition,
    sealer,
    keys,
    agents: shareForgetting(bus, 'agents', createAgentDirectory(db, clock)),
    users: shareForgetting(bus, 'users', users),
    backends,
    models,
    breakers: new Breakers(config.breaker, clock),
    shared,
    usage: shareForgetting(bus, 'budgets', createUsageBooks({ config, db, clock, random, log, metrics })),
    tools: createToolbox(hooks.tools, startMcp(config, { clock, random, log })),
    onUploadComplete: hooks.onUploadComplete,
    converter,
    fileBlobs,
    artifacts: createArtifactDesk({
      ...{ config, db, clock, random, log, metrics, tracing, store, workFolder, converter, bus },
      onUploadComplete: hooks.onUploadComplete,
    }),
    tokens: createTokens({ sealer, clock, keys }),
  }
}

/** Opens every place that bytes are kept in, or none. */
async function openStores(options: ServiceOptions, deps: StoreDeps) {
  const { config } = options
  const opened: { close(): Promise<void> }[] = []
  try {
    const workFolder = await openStoreFolder(config.dataDir, 'conversions', abandonedBefore(deps))
    opened.push(workFolder)
    const fileBlobs = options.fileBlobs ?? (await openBlobs(config, 'files', deps))
    opened.push(fileBlobs)
    const store = options.artifactStore ?? (await openUploadStore(config, 'artifacts', deps))
    return { workFolder, fileBlobs, store }
  } catch (error) {
    await Promise.all(opened.map((place) => place.close()))
    throw error
  }
}

/** The library that traces is loaded only where the settings name somebody to send traces to. */
async function startTracing({ tracing }: Config, log: Logger): Promise<Tracing | undefined> {
  if (tracing === undefined) return undefined
  const { openTracing } = await import('./observability/otel/open.ts')
  return openTracing(tracing, { version: packageJson.version, log })
}

/** Decision: 7 (Tools). */
function startMcp(
  { mcp, timings }: Config,
  deps: Pick<Deps, 'clock' | 'random' | 'log'>,
): Toolbox | undefined {
  return mcp.length === 0 ? undefined : startMcpServers(mcp, { ...deps, callMs: timings.toolMs })
}

/** Registers the operator's key, or makes the first one. Decision: 2 (First start). */
async function ensureParentKey(deps: Deps): Promise<string | undefined> {
  if (deps.config.parentKey !== undefined) await registerParentKey(deps, deps.config.parentKey)
  if (await hasParentKey(deps.db)) return undefined
  await getInstallationId(deps)
  const key = await deps.db.transaction().execute(async (trx) => {
    // Of servers that start at the same time one makes it.
    await lockInstallation(trx)
    return (await hasParentKey(trx)) ? undefined : insertFirstKey({ ...deps, db: trx }, serviceActor)
  })
  deps.keys.forget()
  return key?.text
}

async function recordKeyUse({ keys, log }: Deps): Promise<void> {
  await keys.recordUse().catch((error) => log.warn({ err: error }, 'the use of keys could not be recorded'))
}
