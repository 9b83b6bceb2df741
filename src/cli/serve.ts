/** The `serve` command: runs the service until it is told to stop. */
import type { Logger } from 'pino'
import { serviceActor } from '../audit/actor.ts'
import { createSignInLink, renderSignInUrl } from '../console/sessions.ts'
import { createService, type Service } from '../service.ts'
import { print, printNotice } from './output.ts'
import { readSettings } from './settings.ts'
import { takeStopSignals } from './stop-signals.ts'

/** After a crash, so long for answers under way. Security: 2.4. */
const CRASH_DRAIN_MS = 5_000

/** Starts, prints where the service answers and, the first time, how to begin; stops on SIGTERM or SIGINT. */
export async function serve(): Promise<void> {
  const config = await readSettings()
  const starting = createService({ config })
  stopOnSignal(starting)
  const service = await starting
  print(`listening on ${service.url}`)
  if (service.firstParentKey !== undefined) await printFirstKey(service)
  stopOnCrash(service, service.deps.log)
}

async function printFirstKey({ firstParentKey, url, deps }: Service): Promise<void> {
  print(`
Your first parent key, shown this once; keep it on servers only:

  ${firstParentKey}

API reference: ${url}/docs`)
  if (deps.config.forwardedAuth !== undefined) return
  const signInUrl = renderSignInUrl(
    deps.config.server.publicUrl ?? url,
    await createSignInLink(deps, serviceActor),
  )
  print(`
Sign in to the console, once and within 15 minutes (later: npm run parley -- sign-in):

  ${signInUrl}`)
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
    printNotice(`${signal}: stopping; running answers may end first (once more to stop at once)`)
    await closing
    process.exit(0)
  })
}

/** After an error nobody caught nothing is certain: let answers end, then have the supervisor start afresh. */
function stopOnCrash(service: Service, log: Logger): void {
  const crash = (error: unknown) => {
    log.fatal({ err: error }, 'an error was not caught; stopping')
    setTimeout(() => process.exit(1), CRASH_DRAIN_MS).unref()
    service.close().finally(() => process.exit(1))
  }
  process.once('uncaughtException', crash)
  process.once('unhandledRejection', crash)
}
