/**
 * Gives CLI commands access to an installation's settings, database and parent keys, even while a server is
 * running.
 */
import { randomBytes } from 'node:crypto'
import { userInfo } from 'node:os'
import { deleteVisitorUploads } from '../artifacts/maintenance.ts'
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/parse.ts'
import { ItemData } from '../conversations/operator.ts'
import type { Database } from '../db/database.ts'
import {
  type ConversationStorage,
  createConversationStorage,
  openDatabase,
  openOrCreateDatabase,
} from '../db/open.ts'
import type { Actor } from '../identity/audit.ts'
import { createKeyDirectory } from '../identity/authenticate.ts'
import { listParentKeys } from '../identity/keys.ts'
import { parseKey } from '../lib/api-key.ts'
import { type Clock, createPositions, systemClock } from '../lib/clock.ts'
import { StartupError } from '../lib/errors.ts'
import type { Blobs, ResumableStore } from '../storage/blobs.ts'
import { openBlobs, openUploadStore } from '../storage/open.ts'
import { createLog } from '../telemetry/log.ts'
import { printNotice } from './output.ts'

const KEEP_ALIVE_MS = 60_000

export async function readConfig(): Promise<Config> {
  const { config, warnings } = await loadConfig()
  for (const warning of warnings) printNotice(`warning: ${warning}`)
  return config
}

/**
 * Opens the database, calls `run` and closes the database. Without `create`, a missing database is an error,
 * because the configured directory is probably wrong.
 */
export async function withDatabase(
  run: (db: Database, config: Config, clock: Clock) => Promise<void>,
  ifMissing?: 'create',
): Promise<void> {
  const config = await readConfig()
  if (config.dataDir === ':memory:' && config.databaseUrl === undefined) {
    throw new StartupError(
      'PARLEY_DATA_DIR=:memory: keeps data inside the server process; this command needs a directory on disk.',
    )
  }
  const { db, clock, close } = await (ifMissing === 'create'
    ? openOrCreateDatabase(config)
    : openDatabase({ ...config, role: 'command' }))
  try {
    await run(db, config, clock)
  } finally {
    await close()
  }
}

type DeleteUploads = (which: Parameters<typeof deleteVisitorUploads>[1]) => Promise<void>

/** Calls `run` with the stored conversations and closes them; with SQLite, the file may not exist yet. */
export async function withConversations<T>(
  { db, config }: { readonly db: Database; readonly config: Config },
  run: (storage: ConversationStorage, data: ItemData, deleteUploads: DeleteUploads) => Promise<T>,
): Promise<T> {
  const { databaseUrl, dataDir } = config
  const log = createLog(config)
  const storeDeps = { db, clock: systemClock, log, isOnlyServer: false }
  let blobs: Promise<Blobs> | undefined
  let uploads: Promise<ResumableStore> | undefined
  const openFiles = () => {
    blobs ??= openBlobs(config, 'files', storeDeps)
    return blobs
  }
  const deleteUploads: DeleteUploads = async (which) => {
    if ('ids' in which && which.ids.length === 0) return
    uploads ??= openUploadStore(config, 'artifacts', storeDeps)
    await deleteVisitorUploads({ ...storeDeps, artifacts: { store: await uploads } }, which)
  }
  const storage = createConversationStorage({ db, databaseUrl }, dataDir)
  // The thread that writes to SQLite does not keep the process running.
  const keepAlive = setInterval(() => {}, KEEP_ALIVE_MS)
  try {
    const data = new ItemData({
      ...{ storage, log, openBlobs: openFiles },
      deleteUploads: (ids) => deleteUploads({ ids }),
    })
    return await run(storage, data, deleteUploads)
  } finally {
    await storage.close()
    await (await blobs)?.close()
    await (await uploads)?.blobs.close()
    clearInterval(keepAlive)
  }
}

export function createDeps(db: Database, clock: Clock) {
  return {
    db,
    clock,
    random: randomBytes,
    nextPosition: createPositions(clock),
    keys: createKeyDirectory(db, clock),
  }
}

/**
 * Returns a parent key's id, given the id, the prefixed id or the complete key. Error messages omit the text,
 * because it may be a secret.
 */
export function toPublicId(text: string): string {
  const [, id] = /^(?:svc_)?([0-9A-Za-z]{12})$/.exec(text) ?? []
  if (id !== undefined) return id
  const key = parseKey(text)
  if (key?.kind === 'parent') return key.publicId
  throw new StartupError('This is not the id of a parent key; `parley keys list` shows the ids.')
}

/** Returns the id of the given parent key, or of the only active one. */
export async function chooseParentKey(db: Database, given: string | undefined): Promise<string> {
  const active = (await listParentKeys({ db })).filter((row) => row.revoked_at === null)
  if (given !== undefined) {
    const id = toPublicId(given)
    if (active.some((row) => row.id === id)) return id
    throw new StartupError(`There is no active parent key '${id}'; \`parley keys list\` shows all keys.`)
  }
  const [only, ...others] = active
  if (only === undefined) {
    throw new StartupError('There is no active parent key; `parley keys create --name <name>` creates one.')
  }
  if (others.length === 0) return only.id
  const candidates = active.map(({ id, name }) => `${id} (${name})`).join(', ')
  throw new StartupError(`There are several parent keys; choose one with --key: ${candidates}.`)
}

export function commandActor(): Actor {
  return { kind: 'command', name: userName(), requestId: null, clientAddress: null }
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    // A container may run as a user without a name.
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}
