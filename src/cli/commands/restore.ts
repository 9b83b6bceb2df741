/** The `restore` command: fills an empty data directory from an archive. */
import { createReadStream } from 'node:fs'
import { type RestoreReport, restoreBackup } from '../../backup/restore.ts'
import { systemClock } from '../../lib/clock.ts'
import { createLog } from '../../telemetry/log.ts'
import { readSettings } from '../database.ts'
import { printNotice, printResult } from '../output.ts'
import { untilInterrupted } from '../signals.ts'

/** `-` is standard input. Decision: 2. */
export async function restore(archive: string, isJson: boolean): Promise<void> {
  const config = await readSettings()
  await untilInterrupted(async (signal) => {
    const source = archive === '-' ? process.stdin : createReadStream(archive, { highWaterMark: 256 * 1024 })
    const report = await restoreBackup({ config, clock: systemClock, log: createLog(config) }, source, signal)
    const what = `${report.blobs} files of ${report.bytes} bytes`
    const text = `${config.dataDir} holds the installation of ${new Date(report.created_at * 1000).toISOString()}, with ${what}`
    printResult(isJson, { data_dir: config.dataDir, ...report }, text)
    for (const notice of listNotices(report, config.secret !== undefined)) printNotice(notice)
  })
}

/** What is still to be done, and what is not as it was. */
function* listNotices(
  { secret, lost, unfinished, bucket }: RestoreReport,
  hasSecret: boolean,
): Iterable<string> {
  if (secret === 'environment' && !hasSecret)
    yield 'The archive holds no secret: set PARLEY_SECRET to the one that the installation had.'
  if (secret === 'included' && hasSecret)
    yield 'PARLEY_SECRET counts, and not the secret of the archive; unset it unless both are the same.'
  if (unfinished.length > 0) yield `${unfinished.length} uploads under way begin again.`
  const gone = new Set([...lost, ...(bucket?.lost ?? [])])
  for (const name of unfinished) gone.delete(name)
  if (gone.size > 0) yield `warning: ${gone.size} files are not in the archive: ${[...gone].join(', ')}`
}
