/** The `backup` command: writes the whole installation to one archive. */
import { type BackupReport, createBackup } from '../../backup/backup.ts'
import { toFile, toStream } from '../../backup/output.ts'
import { systemClock } from '../../lib/clock.ts'
import { createLog } from '../../telemetry/log.ts'
import { readConfig } from '../installation.ts'
import { printNotice, printResult } from '../output.ts'
import { runInterruptible } from '../signals.ts'

/** Works with or without a running server. `-` is standard output; the report then goes to standard error. */
export async function backup(archive: string, isJson: boolean): Promise<void> {
  const config = await readConfig()
  await runInterruptible(async (signal) => {
    const isPiped = archive === '-'
    const output = isPiped ? toStream(process.stdout) : toFile(archive)
    const report = await createBackup({ config, clock: systemClock, log: createLog(config) }, output, signal)
    const text = `${archive}: ${renderContents(report)}`
    if (isPiped) printNotice(text)
    else printResult(isJson, { archive, ...report }, text)
    for (const notice of listNotices(report)) printNotice(notice)
  })
}

function renderContents({ rows, blobs, bytes }: BackupReport): string {
  const count = Object.values(rows).reduce((sum, one) => sum + one, 0)
  return `${count} rows in ${Object.keys(rows).length} tables, ${blobs} files of ${bytes} bytes`
}

function* listNotices({ secret, lost, unfinished }: BackupReport): Iterable<string> {
  if (secret === 'environment')
    yield 'PARLEY_SECRET is not in the archive: keep a copy of it, because the agent keys cannot be read without it.'
  if (unfinished.length > 0)
    yield `${unfinished.length} unfinished uploads in the bucket are not in the archive; after a restore they have to start again.`
  if (lost.length > 0)
    yield `warning: ${lost.length} files were lost before this backup and are not in it: ${lost.join(', ')}`
}
