/** The `backup` command: writes the whole installation into one archive. */
import { type BackupReport, createBackup } from '../../backup/backup.ts'
import { toFile, toStream } from '../../backup/output.ts'
import { systemClock } from '../../lib/clock.ts'
import { createLog } from '../../telemetry/log.ts'
import { readSettings } from '../database.ts'
import { printNotice, printResult } from '../output.ts'
import { untilInterrupted } from '../signals.ts'

/** Beside a running server or without one; `-` is standard output, and then the report goes to standard error. Decision: 2. */
export async function backup(archive: string, isJson: boolean): Promise<void> {
  const config = await readSettings()
  await untilInterrupted(async (signal) => {
    const isPiped = archive === '-'
    const output = isPiped ? toStream(process.stdout) : toFile(archive)
    const report = await createBackup({ config, clock: systemClock, log: createLog(config) }, output, signal)
    const say = isPiped ? (_json: boolean, _value: unknown, text: string) => printNotice(text) : printResult
    say(isJson, { archive, ...report }, `${archive}: ${renderContents(report)}`)
    for (const notice of listNotices(report)) printNotice(notice)
  })
}

function renderContents({ rows, blobs, bytes }: BackupReport): string {
  const count = Object.values(rows).reduce((sum, one) => sum + one, 0)
  return `${count} rows in ${Object.keys(rows).length} tables, ${blobs} files of ${bytes} bytes`
}

/** What an operator has to know of an archive, or to keep beside it. */
function* listNotices({ secret, lost, unfinished }: BackupReport): Iterable<string> {
  if (secret === 'environment')
    yield 'PARLEY_SECRET is not in the archive: keep it elsewhere, for without it no agent key can be read.'
  if (unfinished.length > 0)
    yield `${unfinished.length} uploads under way in the bucket are not in the archive; after a restore they begin again.`
  if (lost.length > 0)
    yield `warning: ${lost.length} files were lost before this backup, and are not in it: ${lost.join(', ')}`
}
