/** The `restore` command: restores an archive to an empty data directory. */
import { createReadStream } from 'node:fs'
import { type RestoreReport, restoreBackup } from '../../backup/restore.ts'
import { systemClock } from '../../lib/clock.ts'
import { createLog } from '../../telemetry/log.ts'
import { readConfig } from '../installation.ts'
import { printNotice, printResult } from '../output.ts'
import { runInterruptible } from '../signals.ts'

/** `-` is standard input. */
export async function restore(archive: string, isJson: boolean): Promise<void> {
  const config = await readConfig()
  await runInterruptible(async (signal) => {
    const source = archive === '-' ? process.stdin : createReadStream(archive, { highWaterMark: 256 * 1024 })
    const report = await restoreBackup({ config, clock: systemClock, log: createLog(config) }, source, signal)
    const createdAt = new Date(report.created_at * 1000).toISOString()
    const text = `restored the installation of ${createdAt} to ${config.dataDir}: ${report.blobs} files, ${report.bytes} bytes`
    printResult(isJson, { data_dir: config.dataDir, ...report }, text)
    for (const notice of listNotices(report, config.secret !== undefined)) printNotice(notice)
  })
}

/** What the operator still has to do, and what was not restored. */
function* listNotices(
  { secret, lost, unfinished, bucket }: RestoreReport,
  hasSecret: boolean,
): Iterable<string> {
  if (secret === 'environment' && !hasSecret)
    yield 'The archive does not contain the secret: set PARLEY_SECRET to the value that the installation had.'
  if (secret === 'included' && hasSecret)
    yield 'PARLEY_SECRET is set and replaces the secret in the archive; unset it unless both are the same.'
  if (unfinished.length > 0) yield `${unfinished.length} unfinished uploads have to start again.`
  const gone = new Set([...lost, ...(bucket?.lost ?? [])])
  for (const name of unfinished) gone.delete(name)
  if (gone.size > 0) yield `warning: ${gone.size} files are not in the archive: ${[...gone].join(', ')}`
}
