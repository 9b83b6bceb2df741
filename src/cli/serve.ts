/** The `serve` command: runs the service, in one process or in several, until it is told to stop. */
import cluster from 'node:cluster'
import type { Logger } from 'pino'
import { serviceActor } from '../audit/actor.ts'
import type { Config } from '../config.ts'
import { createSignInLink, renderSignInUrl } from '../console/sessions.ts'
import { createService, type Service } from '../service.ts'
import { StartupError } from '../startup-error.ts'
import { print, printNotice } from './output.ts'
import { readSettings } from './settings.ts'
import { takeStopSignals } from './stop-signals.ts'

/** After a crash, so long for answers under way. Security: 2.4. */
const CRASH_DRAIN_MS = 5_000

/** Starts, prints where the service answers and, the first time, how to begin; stops on SIGTERM or SIGINT. Decision: 2. */
export async function serve(workers: number): Promise<void> {
  if (cluster.isWorker) return (await import('./worker.ts')).serveAsWorker()
  const config = await readSettings()
  if (workers > 1) {
    assertShared(config)
    return (await import('./workers.ts')).serveWithWorkers(config, workers)
  }
  const starting = createService({ config })
  stopOnSignal(starting)
  const service = await starting
  print(`listening on ${service.url}`)
  const welcome = describeBeginning(service)
  if (welcome !== undefined) {
    print(welcome.key)
    await welcome.link.then((text) => text && print(text))
  }
  stopOnCrash(service, service.deps.log)
}

/** Refuses what only one process can use. */
function assertShared({ databaseUrl, dataDir, s3 }: Config): void {
  if (databaseUrl === undefined) {
    throw new StartupError(
      'SQLite has one writer, so several workers need PostgreSQL: set DATABASE_URL, or leave out --workers.',
    )
  }
  if (dataDir === ':memory:' && s3 === undefined) {
    throw new StartupError(
      'PARLEY_DATA_DIR is :memory:, where no worker finds the files of another; name a directory, set S3_BUCKET, or leave out --workers.',
    )
  }
}

/** What a first start tells: its key at once, and a link to sign in with where people need one. Decision: 2 (First start). */
export interface Beginning {
  readonly key: string
  readonly link: Promise<string | undefined>
}

/** Undefined when it is no first start. */
export function describeBeginning({ firstParentKey, url, deps }: Service): Beginning | undefined {
  if (firstParentKey === undefined) return undefined
  const key = `
Your first parent key, shown this once; keep it on servers only:

  ${firstParentKey}

API reference: ${url}/docs`
  return { key, link: describeLink(deps, url) }
}

async function describeLink(deps: Service['deps'], url: string): Promise<string | undefined> {
  if (deps.config.forwardedAuth !== undefined) return undefined
  const signInUrl = renderSignInUrl(
    deps.config.server.publicUrl ?? url,
    await createSignInLink(deps, serviceActor),
  )
  return `
Sign in to the console, once and within 15 minutes (later: npm run parley -- sign-in):

  ${signInUrl}`
}

/**
 * The first signal lets running answers end, the second ends the process at once. A start goes on to its end first: a parent key
 * that it made and nobody saw would be lost. Decision: 2 (`serve`).
 */
function stopOnSignal(starting: Promise<Service>): void {
  let isStopping = false
  takeStopSignals(async (signal) => {
    if (isStopping) process.exit(1)
    isStopping = true
    const service = await starting.catch(() => undefined)
    // The command says why there is none, and ends.
    if (service === undefined) return
    const closing = service.close()
    printNotice(noticeOf(signal))
    await closing
    process.exit(0)
  })
}

/** What whoever stops the service is told. */
export function noticeOf(signal: NodeJS.Signals): string {
  return `${signal}: stopping; running answers may end first (once more to stop at once)`
}

/** After an error nobody caught nothing is certain: let answers end, then have the supervisor start afresh. */
export function stopOnCrash(service: Service, log: Logger): void {
  const crash = (error: unknown) => {
    log.fatal({ err: error }, 'an error was not caught; stopping')
    setTimeout(() => process.exit(1), CRASH_DRAIN_MS).unref()
    service.close().finally(() => process.exit(1))
  }
  process.once('uncaughtException', crash)
  process.once('unhandledRejection', crash)
}
