/** Restores an installation from a backup archive after all checks have passed. */
import { existsSync } from 'node:fs'
import { readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { Config } from '../config/config.ts'
import { countRows, openCheckedConversations, openCheckedCopy } from '../db/snapshot.ts'
import { StartupError } from '../lib/errors.ts'
import { syncFolder } from '../lib/files.ts'
import { ignoreMissing } from '../storage/folder.ts'
import { type CopiedBytes, copyIntoBucket, findBytes } from './copy-to-bucket.ts'
import type { Dependencies } from './dependencies.ts'
import { claimEmptyDirectory } from './empty-directory.ts'
import { extract } from './extract.ts'
import { type BackupReport, CONVERSATIONS, DATABASE, type Manifest, SECRET, toReport } from './manifest.ts'
import { listReferencedBlobs, type ReferencedBlob } from './store.ts'
import { damaged } from './tar.ts'

export interface RestoreReport extends BackupReport {
  readonly bucket: CopiedBytes | undefined
}

type RestoreDeps = Pick<Dependencies, 'config' | 'clock' | 'log'>

/**
 * Restores an archive to an empty data directory (ADR 0033).
 * @throws StartupError if the directory is in use or not empty, or if the archive is damaged, too new, or
 *   not from Parley.
 */
export async function restoreBackup(
  deps: RestoreDeps,
  archive: Readable,
  signal?: AbortSignal,
): Promise<RestoreReport> {
  const { dataDir } = deps.config
  assertSqlite(deps.config)
  // Prevents an uncaught error before the archive is read. The reader reports the error.
  archive.on('error', () => {})
  const directory = await claimEmptyDirectory(dataDir)
  try {
    signal?.addEventListener('abort', () => void archive.destroy(signal.reason), { once: true })
    const manifest = await extract(archive, directory.folder)
    await assertSameSecret(directory.folder, dataDir)
    const bucket = await checkAndPlaceBytes(deps, directory.folder, manifest)
    signal?.throwIfAborted()
    await moveIntoPlace(directory.folder, dataDir)
    return { ...toReport(manifest), bucket }
  } catch (error) {
    await directory.giveUp()
    throw error
  } finally {
    directory.release()
  }
}

function assertSqlite({ databaseUrl, dataDir }: Config): void {
  if (databaseUrl !== undefined) {
    throw new StartupError(
      'A backup can be restored only into a data directory, but DATABASE_URL is set. Unset it, restore, set it again, and run `parley store copy`.',
    )
  }
  if (dataDir === ':memory:')
    throw new StartupError('PARLEY_DATA_DIR is :memory:. Set it to the directory to restore into.')
}

/** @throws StartupError if the directory already has a secret that differs from the archive's. */
async function assertSameSecret(folder: string, dataDir: string): Promise<void> {
  const [archived, there] = await Promise.all(
    [folder, dataDir].map((one) => readFile(join(one, SECRET), 'utf8').catch(ignoreMissing)),
  )
  if (archived === undefined || there === undefined || archived.trim() === there.trim()) return
  throw new StartupError(
    `The file ${join(dataDir, SECRET)} contains a different secret than the archive. Move it elsewhere, so that the secret from the archive can be restored.`,
  )
}

async function checkAndPlaceBytes(
  deps: RestoreDeps,
  folder: string,
  manifest: Manifest,
): Promise<CopiedBytes | undefined> {
  const conversations = await openArchivedConversations(folder, manifest)
  const copy = await openCheckedCopy(join(folder, DATABASE))
  try {
    const stored = conversations === undefined ? {} : await countRows(conversations.db)
    assertSameSchema(DATABASE, copy.schema, manifest.schema)
    assertSameRows({ ...(await countRows(copy.db)), ...stored }, manifest)
    await assertBlobs(listReferencedBlobs(copy.db, conversations?.db), folder, manifest)
    if (deps.config.s3 === undefined) return undefined
    const copied = await copyIntoBucket({ ...deps, db: copy.db }, folder, conversations?.db)
    for (const store of ['files', 'artifacts'])
      await rm(join(folder, store), { recursive: true, force: true })
    return copied
  } finally {
    copy.close()
    conversations?.close()
    await syncFolder(folder)
  }
}

/**
 * Opens the archive's stored conversations, if it contains any. @throws StartupError if they are incomplete.
 */
async function openArchivedConversations(folder: string, manifest: Manifest) {
  const path = join(folder, CONVERSATIONS)
  if (existsSync(path) !== (manifest.conversations === 'included'))
    throw damaged(`its manifest and its contents disagree about ${CONVERSATIONS}`)
  if (manifest.conversations !== 'included') return undefined
  const opened = await openCheckedConversations(path)
  try {
    assertSameSchema(CONVERSATIONS, opened.schema, manifest.conversations_schema)
    return opened
  } catch (error) {
    opened.close()
    throw error
  }
}

function assertSameSchema(name: string, found: string, expected: string | undefined): void {
  if (found !== expected)
    throw damaged(`its ${name} has the schema ${found}, but its manifest states ${expected}`)
}

function assertSameRows(rows: Readonly<Record<string, number>>, manifest: Manifest): void {
  for (const table of new Set([...Object.keys(rows), ...Object.keys(manifest.rows)])) {
    if (rows[table] !== manifest.rows[table])
      throw damaged(`the table ${table} has ${rows[table]} rows, not ${manifest.rows[table]}`)
  }
}

async function assertBlobs(
  blobs: AsyncIterable<ReferencedBlob>,
  folder: string,
  manifest: Manifest,
): Promise<void> {
  const leftOut = new Set([...manifest.lost, ...manifest.unfinished])
  for await (const blob of blobs) {
    if (!leftOut.has(blob.name) && (await findBytes(folder, blob)) === undefined)
      throw damaged(`a row refers to the file ${blob.name}, which is missing or incomplete in the archive`)
  }
}

/** Moves the database last. No server can start without it, so an interrupted restore can be repeated. */
async function moveIntoPlace(folder: string, dataDir: string): Promise<void> {
  const names = (await readdir(folder)).filter((name) => name !== DATABASE)
  for (const name of names.sort()) await rename(join(folder, name), join(dataDir, name))
  await syncFolder(dataDir)
  await rename(join(folder, DATABASE), join(dataDir, DATABASE))
  await syncFolder(dataDir)
  await rm(folder, { recursive: true, force: true })
  await syncFolder(dataDir)
}
