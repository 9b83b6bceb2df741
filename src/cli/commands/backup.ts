/** Implements the `backup` command, which writes an installation to one archive, and the `restore` command. */

import { createReadStream } from 'node:fs'
import { createBackup } from '../../backup/backup.ts'
import type { BackupReport } from '../../backup/manifest.ts'
import { toFile, toStream } from '../../backup/output.ts'
import { type RestoreReport, restoreBackup } from '../../backup/restore.ts'
import { systemClock } from '../../lib/clock.ts'
import { createLog } from '../../telemetry/log.ts'
import { readConfig } from '../installation.ts'
import { printNotice, printResult } from '../output.ts'
import { runInterruptible } from '../signals.ts'

interface BackupCommandOptions {
  readonly json?: boolean
  readonly withoutConversations?: boolean
}

/**
 * Writes a backup, whether or not a server is running. The name `-` writes the archive to standard output and
 * the report to standard error.
 */
export async function backup(
  archive: string,
  { json: isJson = false, withoutConversations = false }: BackupCommandOptions,
): Promise<void> {
  const config = await readConfig()
  await runInterruptible(async (signal) => {
    const isPiped = archive === '-'
    const output = isPiped ? toStream(process.stdout) : toFile(archive)
    const report = await createBackup({ config, clock: systemClock, log: createLog(config) }, output, {
      withConversations: !withoutConversations,
      signal,
    })
    const text = `${archive}: ${renderContents(report)}`
    if (isPiped) printNotice(text)
    else printResult(isJson, { archive, ...report }, text)
    for (const notice of listOmissions(report)) printNotice(notice)
  })
}

function renderContents({ rows, blobs, bytes }: BackupReport): string {
  const count = Object.values(rows).reduce((sum, one) => sum + one, 0)
  return `${count} rows in ${Object.keys(rows).length} tables, ${blobs} files, ${bytes} bytes`
}

function* listOmissions({ secret, conversations, lost, unfinished }: BackupReport): Iterable<string> {
  if (conversations === 'omitted') yield 'The stored conversations are not in the archive.'
  if (secret === 'environment')
    yield 'PARLEY_SECRET is not in the archive. Keep a copy of it: without it, the stored agent keys cannot be decrypted.'
  if (unfinished.length > 0)
    yield `${unfinished.length} unfinished uploads in the bucket are not in the archive; after a restore, clients must start them again.`
  if (lost.length > 0)
    yield `warning: ${lost.length} files were already missing and are not in the archive: ${lost.join(', ')}`
}

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

function* listNotices(
  { secret, conversations, lost, unfinished, bucket }: RestoreReport,
  hasSecret: boolean,
): Iterable<string> {
  if (conversations === 'omitted') yield 'The archive does not contain the stored conversations.'
  if (secret === 'environment' && !hasSecret)
    yield 'The archive does not contain the secret. Set PARLEY_SECRET to the value that the installation used.'
  if (secret === 'included' && hasSecret)
    yield 'PARLEY_SECRET is set and overrides the secret from the archive. Unset it unless both are the same.'
  if (unfinished.length > 0) yield `${unfinished.length} unfinished uploads must be started again.`
  const gone = new Set([...lost, ...(bucket?.lost ?? [])])
  for (const name of unfinished) gone.delete(name)
  if (gone.size > 0) yield `warning: ${gone.size} files are missing from the archive: ${[...gone].join(', ')}`
}
