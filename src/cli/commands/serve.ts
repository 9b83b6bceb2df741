/** The `serve` command runs the service in one or more processes until a signal stops it. */
import cluster from 'node:cluster'
import type { Config } from '../../config/config.ts'
import { StartupError } from '../../lib/errors.ts'
import { createService, type Service } from '../../server/service.ts'
import { readConfig } from '../installation.ts'
import { createWelcome, stopOnCrash } from '../lifecycle.ts'
import { print } from '../output.ts'
import { printStopping, setStopHandler } from '../signals.ts'

export async function serve(workers: number): Promise<void> {
  if (cluster.isWorker) return (await import('../workers/worker.ts')).serveAsWorker()
  const config = await readConfig()
  if (workers > 1) {
    assertShared(config)
    return (await import('../workers/primary.ts')).serveWithWorkers(config, workers)
  }
  const starting = createService({ config })
  stopOnSignal(starting)
  const service = await starting
  const welcome = createWelcome(service)
  // Prints the URL and the key in one write, so that programs that read the first line also receive the key.
  print([`listening on ${service.url}`, welcome?.key].filter((text) => text !== undefined).join('\n'))
  await welcome?.link.then((text) => text && print(text))
  stopOnCrash(service, service.deps.log)
}

function assertShared({ databaseUrl, dataDir, s3 }: Config): void {
  if (databaseUrl === undefined) {
    throw new StartupError(
      'Several workers require PostgreSQL, because SQLite allows only one writer. Set DATABASE_URL, or omit --workers.',
    )
  }
  if (dataDir === ':memory:' && s3 === undefined) {
    throw new StartupError(
      'PARLEY_DATA_DIR=:memory: keeps files inside one process. Set it to a directory, set S3_BUCKET, or omit --workers.',
    )
  }
}

/**
 * Handles stop signals during startup. After the first one, waits until a newly created parent key is
 * printed; the second one exits immediately.
 */
function stopOnSignal(starting: Promise<Service>): void {
  let isStopping = false
  setStopHandler(async (signal) => {
    if (isStopping) process.exit(1)
    isStopping = true
    const service = await starting.catch(() => undefined)
    // The start failed; the command reports the error and exits.
    if (service === undefined) return
    const closing = service.close()
    printStopping(signal)
    await closing
    process.exit(0)
  })
}
