/** The `serve` command: runs the service until it is told to stop. */
import type { Logger } from 'pino'
import { createService, type Service } from '../service.ts'
import { print, printNotice } from './output.ts'
import { readSettings } from './settings.ts'

/** After a crash, so long for answers under way. Security: 2.4. */
const CRASH_DRAIN_MS = 5_000

/** Starts, prints where the service answers and, the first time, the first parent key; stops on SIGTERM or SIGINT. */
export async function serve(): Promise<void> {
  const service = await createService({ config: await readSettings() })
  print(`listening on ${service.url}`)
  if (service.firstParentKey !== undefined) printFirstKey(service)
  stopOnSignal(service)
  stopOnCrash(service, service.deps.log)
}

function printFirstKey({ firstParentKey, url }: Service): void {
  print(`
Your first parent key, shown this once; keep it on servers only:

  ${firstParentKey}

API reference: ${url}/docs`)
}

/** The first signal lets running answers end, the second ends the process at once. Decision: 2 (`serve`). */
function stopOnSignal(service: Service): void {
  let isStopping = false
  const stop = async (signal: NodeJS.Signals) => {
    if (isStopping) process.exit(1)
    isStopping = true
    const closing = service.close()
    printNotice(`${signal}: stopping; running answers may end first (once more to stop at once)`)
    await closing
    process.exit(0)
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
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
