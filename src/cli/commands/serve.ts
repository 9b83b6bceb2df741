/** The `serve` command: runs the service, in one process or in several, until it is told to stop. */
import cluster from 'node:cluster'
import type { Config } from '../../config/config.ts'
import { StartupError } from '../../lib/errors.ts'
import { createService, type Service } from '../../server/service.ts'
import { readSettings } from '../database.ts'
import { describeBeginning, noticeOf, stopOnCrash } from '../lifecycle.ts'
import { print, printNotice } from '../output.ts'
import { takeStopSignals } from '../signals.ts'

/** Starts, prints where the service answers and, the first time, how to begin; stops on SIGTERM or SIGINT. Decision: 2. */
export async function serve(workers: number): Promise<void> {
  if (cluster.isWorker) return (await import('../workers/worker.ts')).serveAsWorker()
  const config = await readSettings()
  if (workers > 1) {
    assertShared(config)
    return (await import('../workers/primary.ts')).serveWithWorkers(config, workers)
  }
  const starting = createService({ config })
  stopOnSignal(starting)
  const service = await starting
  const welcome = describeBeginning(service)
  // At once: whoever waits for the first line finds the key behind it.
  print([`listening on ${service.url}`, welcome?.key].filter((text) => text !== undefined).join('\n'))
  await welcome?.link.then((text) => text && print(text))
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
