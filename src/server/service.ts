/** Starts and stops a service, for the `serve` command, for tests, and for programs that embed it. */

import packageJson from '../../package.json' with { type: 'json' }
import { listRetention } from '../agents/agents.ts'
import { startBinMaintenance } from '../agents/bin.ts'
import {
  completeInterruptedUploads,
  createArtifactSweeper,
  recoverUploads,
} from '../artifacts/maintenance.ts'
import { recordExpiry } from '../conversations/conversations.ts'
import type { OpenedDatabase } from '../db/database.ts'
import { getInstallationId, lockInstallation } from '../db/installation.ts'
import { openDatabase } from '../db/open.ts'
import { listPermissionProblems } from '../db/permissions.ts'
import { createFileSweeper } from '../files/files.ts'
import { createDrain, listen, urlOf } from '../http/server.ts'
import { serviceActor } from '../identity/audit.ts'
import { hasParentKey, insertFirstKey, registerParentKey } from '../identity/keys.ts'
import { startSweeper } from '../storage/sweeper.ts'
import { createLog } from '../telemetry/log.ts'
import type { CollectedMetric, CollectFromWorkers } from '../telemetry/prometheus.ts'
import { startUsageMaintenance } from '../usage/retention.ts'
import { loadConsole } from '../web/console.ts'
import { loadDocumentation } from '../web/documentation.ts'
import { loadWidget } from '../web/widget-files.ts'
import { renderApiDocument } from './api.ts'
import { type AppOptions, createApp } from './app.ts'
import { createDeps, gatherHooks, type ServiceOptions } from './build.ts'
import type { Deps } from './dependencies.ts'
import { createCounting } from './metrics.ts'

export type {
  CompletedUpload,
  EndedConversion,
  OnConversionEnd,
  OnUploadComplete,
  UploadHooks,
} from '../artifacts/metadata.ts'
export type { HostTool, HostTools } from '../tools/host-tools.ts'
export type { HostHooks } from './hooks.ts'

export interface Service {
  /** The server's URL, such as `http://127.0.0.1:3000`. */
  readonly url: string
  /** The first parent key, if this start created it; it cannot be read again later. */
  readonly firstParentKey: string | undefined
  readonly deps: Deps
  collectMetrics(): Promise<CollectedMetric[]>
  /** Stops accepting requests, waits for active calls, then aborts the rest. Later calls have no effect. */
  close(): Promise<void>
}

const RECORD_USE_EVERY_MS = 10_000

/**
 * Opens the data stores, creates the providers and listens. @throws StartupError for a problem that the
 * operator can fix.
 */
export async function createService(options: ServiceOptions): Promise<Service> {
  const hooks = await gatherHooks(options)
  const { config, log = createLog(config) } = options
  const opened = await openDatabase({ ...config, role: 'server', log })
  let deps: Deps | undefined
  try {
    deps = await createDeps({ ...options, log }, opened, hooks)
    for (const problem of await listPermissionProblems(config.dataDir)) log.warn(problem)
    return await startService(deps, opened, options.collectFromWorkers)
  } catch (error) {
    // Releases everything already started, because the process could not exit otherwise.
    if (deps !== undefined) {
      await Promise.all([
        closeSources(deps),
        deps.fileBlobs.close(),
        deps.artifacts.close(),
        deps.conversations.close(),
      ])
      await deps.shared.close()
      await deps.tracing?.close()
    }
    await opened.close()
    throw error
  }
}

let pages: Promise<Pick<AppOptions, 'widget' | 'console' | 'documentation'>> | undefined

function loadPages(): NonNullable<typeof pages> {
  pages ??= Promise.all([loadWidget(), loadConsole(), loadDocumentation()])
    .then(([widget, console, documentation]) => ({ widget, console, documentation }))
    .catch((error) => {
      pages = undefined
      throw error
    })
  return pages
}

/** Starts background work; the returned function stops it after completing work in progress. */
function startMaintenance(deps: Deps): () => Promise<void> {
  const recordUse = setInterval(() => void recordKeyUse(deps), RECORD_USE_EVERY_MS).unref()
  const stopUsageMaintenance = startUsageMaintenance(deps)
  const stopPurgingBin = startBinMaintenance(deps)
  const stopSweepingFiles = startSweeper(createFileSweeper(deps), 'files', deps)
  const unfinished = Promise.all([completeInterruptedUploads(deps), deps.artifacts.processing.start()]).catch(
    (error) => deps.log.warn({ err: error }, 'could not finish interrupted uploads'),
  )
  const stopSweepingArtifacts = startSweeper(createArtifactSweeper(deps), 'artifacts', deps)
  deps.conversations.startMaintenance(
    (ids) => listRetention(deps, ids),
    (counts) => recordExpiry(deps, serviceActor, counts),
  )
  return async () => {
    clearInterval(recordUse)
    await recordKeyUse(deps)
    await Promise.all([
      deps.usage.close().then(() => closeBudgets(deps)),
      stopUsageMaintenance(),
      stopPurgingBin(),
      stopSweepingFiles(),
      stopSweepingArtifacts(),
      unfinished,
    ])
  }
}

async function startService(
  deps: Deps,
  opened: OpenedDatabase,
  collectFromWorkers: CollectFromWorkers | undefined,
): Promise<Service> {
  const { server: address, timings } = deps.config
  let openapi: Buffer | undefined
  const counting = createCounting(deps, {
    version: packageJson.version,
    readPool: opened.postgres?.readPool,
    collectFromWorkers,
  })
  const app = createApp({
    deps,
    ...(await loadPages()),
    // Rendered on the first request to keep server startup fast.
    get openapi() {
      openapi ??= Buffer.from(JSON.stringify(renderApiDocument()))
      return openapi
    },
    scrape: counting.scrape,
  })
  // Releases a previous process's leases. If other servers are running, such leases expire instead.
  if (opened.isOnlyServer) await recoverUploads(deps)
  const server = await listen(app.listener, address.host, address.port)
  const drain = createDrain(server)
  warnWithoutFfmpeg(deps)
  await Promise.all([deps.providers.settled(), deps.priceOverrides.settled(), deps.meters.settled()])
  // Runs after all steps that can fail, because a key that is created but never shown would be lost.
  const firstParentKey = await ensureParentKey(deps).catch((error) => {
    server.close().closeAllConnections()
    throw error
  })
  await deps.budgets.gate.start(opened.isOnlyServer)
  deps.webhooks.deliverer.start()
  deps.erasures.start()
  const stopMaintenance = startMaintenance({ ...deps, db: opened.backgroundDb })

  async function stop(): Promise<void> {
    app.beginDraining()
    deps.followers.stop()
    const stopped = deps.artifacts.processing.close()
    await drain(timings.shutdownMs, app.abortCalls)
    counting.close()
    await deps.erasures.close()
    await deps.keySets.close()
    await deps.webhooks.deliverer.close()
    await deps.conversations.close()
    await closeSources(deps)
    await stopMaintenance()
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
    collectMetrics: counting.collect,
    close() {
      stopping ??= stop()
      return stopping
    },
  }
}

function warnWithoutFfmpeg({ converter: { programs }, log }: Deps): void {
  if (programs.ffmpeg !== undefined && programs.ffprobe !== undefined) return
  log.warn('ffmpeg or ffprobe not found: videos are served unconverted (see docs/conversion.md)')
}

async function closeSources(deps: Deps): Promise<void> {
  const { models, backends, providers, priceOverrides, tools } = deps
  models.close()
  await Promise.all([
    ...[providers.close(), priceOverrides.close(), tools.close()],
    ...backends.map((backend) => backend.close()),
  ])
}

/** Call it after the last call has ended. */
async function closeBudgets({ budgets, violations, meters }: Deps): Promise<void> {
  await violations.flush()
  await Promise.all([budgets.gate.close(), meters.close()])
}

async function ensureParentKey(deps: Deps): Promise<string | undefined> {
  if (deps.config.parentKey !== undefined) await registerParentKey(deps, deps.config.parentKey)
  if (await hasParentKey(deps.db)) return undefined
  await getInstallationId(deps)
  const key = await deps.db.transaction().execute(async (trx) => {
    // Takes a lock, so that only one of several starting servers creates the key.
    await lockInstallation(trx)
    return (await hasParentKey(trx)) ? undefined : insertFirstKey({ ...deps, db: trx }, serviceActor)
  })
  deps.keys.invalidate()
  return key?.text
}

async function recordKeyUse({ keys, log }: Deps): Promise<void> {
  await keys.recordUse().catch((error) => log.warn({ err: error }, 'could not record the last use of keys'))
}
