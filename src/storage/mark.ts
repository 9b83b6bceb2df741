/** Marks storage folders with the id of the installation that they belong to. See docs/adr/0040. */
import { randomUUID } from 'node:crypto'
import { opendir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import { cannotUse } from '../db/data-directory.ts'
import type { Database } from '../db/database.ts'
import { findInstallation, getInstallationId } from '../db/installation.ts'
import { StartupError } from '../lib/errors.ts'
import { createFileOnce, isMissing } from '../lib/files.ts'
import { isBlobName } from './blobs.ts'
import type { Dependencies } from './dependencies.ts'
import { ignoreMissing, isFull, makeFolder } from './folder.ts'
import { RESUMABLE_FOLDER, toBlobName } from './resumable-files.ts'
import { inBatches } from './sweeper.ts'

export const MARK = 'installation'

export const storeNames = ['files', 'artifacts'] as const
export type StoreName = (typeof storeNames)[number]

const MAX_NAMES_CHECKED = 1_000

type NamesBlobs = (
  db: Database,
  names: readonly string[],
  config: PlaceConfig,
) => Promise<ReadonlySet<string>>

export type NamedBlobs = Readonly<Record<StoreName, NamesBlobs>>

type PlaceConfig = Pick<Config, 'dataDir' | 'databaseUrl' | 's3'>

/**
 * Marks unmarked folders; several servers may do this at the same time. @throws StartupError, without
 * changing anything, if a folder belongs to another database.
 */
export async function claimFolders(
  config: PlaceConfig,
  names: readonly StoreName[],
  deps: Pick<Dependencies, 'db' | 'clock' | 'log'> & { readonly namedBlobs: NamedBlobs },
): Promise<void> {
  const unmarked = await findUnmarkedFolders(config, deps.db, deps.namedBlobs, names)
  if (unmarked.length === 0) return
  const id = await getInstallationId(deps)
  for (const name of unmarked) {
    const folder = join(config.dataDir, name)
    const mark = await writeMark(folder, id).catch((error) => {
      if (!isFull(error)) throw cannotUse('folder', folder, error)
      deps.log.warn({ folder }, 'the disk is full, so a later start will mark the folder')
      return id
    })
    if (mark !== id) throw otherInstallation(config, name, mark, id)
  }
}

/**
 * Runs the checks of `claimFolders` without changing anything, and returns the unmarked folders. @throws
 * StartupError
 */
export async function findUnmarkedFolders(
  config: PlaceConfig,
  db: Database,
  namedBlobs: NamedBlobs,
  names: readonly StoreName[] = storeNames,
): Promise<StoreName[]> {
  const unmarked = await checkMarks(config, db, names)
  for (const name of unmarked) {
    if (!(await isPlausiblyOwn(join(config.dataDir, name), (blobs) => namedBlobs[name](db, blobs, config))))
      throw new StartupError(
        `The folder ${join(config.dataDir, name)} contains files, but ${nameDatabase(config)} refers to none of them, so they seem to belong to another installation. ${WHAT_TO_DO}`,
      )
  }
  return unmarked
}

/**
 * Returns the unmarked folders; works with an old database schema. @throws StartupError if a mark differs
 * from the database's id.
 */
export async function checkMarks(
  config: PlaceConfig,
  db: Database,
  names: readonly StoreName[] = storeNames,
): Promise<StoreName[]> {
  if (config.s3 !== undefined || config.dataDir === ':memory:') return []
  const unmarked: StoreName[] = []
  for (const name of names) {
    const mark = await readMark(join(config.dataDir, name))
    if (mark === undefined) {
      unmarked.push(name)
      continue
    }
    // Reads the id after the mark, because a starting server writes its id to the database before it writes
    // the mark.
    const id = (await findInstallation(db))?.id
    if (mark !== id) throw otherInstallation(config, name, mark, id)
  }
  return unmarked
}

/**
 * Marks the folders for this installation even if they have a different mark; returns their previous marks.
 */
export async function adoptFolders(dataDir: string, id: string): Promise<Record<StoreName, string | null>> {
  const former: Record<StoreName, string | null> = { files: null, artifacts: null }
  for (const name of storeNames) {
    const folder = join(dataDir, name)
    former[name] = (await readMark(folder)) ?? null
    if (former[name] !== id) await writeMark(folder, id, 'replace')
  }
  return former
}

async function readMark(folder: string): Promise<string | undefined> {
  const path = join(folder, MARK)
  const text = await readFile(path, 'utf8').catch((error) => {
    if (!isMissing(error)) throw cannotUse('file', path, error)
    return undefined
  })
  return text?.trim()
}

async function writeMark(folder: string, id: string, ifMarked?: 'replace'): Promise<string> {
  await makeFolder(folder)
  const path = join(folder, MARK)
  const draft = join(folder, `.${MARK}-${randomUUID()}`)
  if (ifMarked === 'replace') await rm(path, { force: true })
  return createFileOnce(path, `${id}\n`, draft)
}

/**
 * Accepts an unmarked folder, which is new or from an old version, if it is empty or a database row refers to
 * one of its files.
 */
async function isPlausiblyOwn(
  folder: string,
  findNamed: (blobs: readonly string[]) => Promise<ReadonlySet<string>>,
): Promise<boolean> {
  let seen = 0
  for await (const batch of inBatches(listNames(folder))) {
    if ((await findNamed(batch)).size > 0) return true
    seen += batch.length
    if (seen >= MAX_NAMES_CHECKED) return false
  }
  return seen === 0
}

async function* listNames(folder: string): AsyncIterable<string> {
  for (const path of [folder, join(folder, RESUMABLE_FOLDER)]) {
    const found = await stat(path).catch(ignoreMissing)
    if (found === undefined || !found.isDirectory()) continue
    for await (const { name: file } of await opendir(path)) {
      const name = toBlobName(file)
      if (isBlobName(name)) yield name
    }
  }
}

function nameDatabase({ dataDir, databaseUrl }: PlaceConfig): string {
  return databaseUrl === undefined ? `the database in ${dataDir}` : 'the database in DATABASE_URL'
}

const WHAT_TO_DO =
  'Nothing was changed. Correct DATABASE_URL or PARLEY_DATA_DIR, or restore the right database. If these files do belong to this database, run `parley store adopt`; the server then deletes files that no row refers to.'

function otherInstallation(
  config: PlaceConfig,
  name: StoreName,
  mark: string,
  id: string | undefined,
): StartupError {
  const whose = id === undefined ? 'is new and has no id yet' : `has the id ${id}`
  return new StartupError(
    `The folder ${join(config.dataDir, name)} belongs to another installation: its file ${MARK} contains ${mark}, but ${nameDatabase(config)} ${whose}. ${WHAT_TO_DO}`,
  )
}
