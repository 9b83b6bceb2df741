/** Lists the blobs that database rows refer to. Every backup must contain them. */
import type { Kysely, Selectable } from 'kysely'
import type { Database } from '../db/database.ts'
import type { ConversationDb } from '../db/open.ts'
import type { ArtifactTable } from '../db/tables.ts'

const BATCH = 1_000

export type StoreName = 'files' | 'artifacts'

export interface ReferencedBlob {
  readonly store: StoreName
  readonly name: string
  readonly sizeBytes: number
  /** The fence of an active upload; undefined for a committed blob. */
  readonly uploadFence: number | undefined
}

/**
 * Lists all referenced blobs in no particular order. Skips tables that an older schema lacks. `conversations`
 * is the database of stored conversations, if it must be included.
 */
export async function* listReferencedBlobs(
  db: Database,
  conversations: ConversationDb | undefined,
): AsyncIterable<ReferencedBlob> {
  const tables = await listTables(db)
  if (tables.has('files')) yield* listOfFiles(db)
  if (tables.has('artifacts')) yield* listOfArtifacts(db)
  if (conversations !== undefined && (await listTables(conversations)).has('item_data'))
    yield* listOfItems(conversations)
}

async function listTables<T>(db: Kysely<T>): Promise<Set<string>> {
  return new Set((await db.introspection.getTables()).map(({ name }) => name))
}

async function* listOfItems(db: ConversationDb): AsyncIterable<ReferencedBlob> {
  const rows = db
    .selectFrom('item_data')
    .select(['name as id', 'bytes'])
    // These rows refer to artifacts, which the main database lists.
    .where('name', 'not like', 'upload:%')
    .orderBy('name')
    .limit(BATCH)
  const readPage = (after: string) => rows.where('name', '>', after).where('is_deleted', '=', 0).execute()
  for await (const { id, bytes } of readAll(readPage)) yield toWhole('files', id, bytes)
}

async function* listOfFiles(db: Database): AsyncIterable<ReferencedBlob> {
  const files = db.selectFrom('files').select(['id', 'blob', 'size_bytes']).orderBy('id').limit(BATCH)
  const readPage = (after: string) => files.where('id', '>', after).execute()
  for await (const { blob, size_bytes } of readAll(readPage)) yield toWhole('files', blob, size_bytes)
}

const artifactColumns = [
  'id',
  'state',
  'blob',
  'received_bytes',
  'fence',
  'served_blob',
  'served_bytes',
  'poster_blob',
  'poster_bytes',
  'acknowledged',
] as const

async function* listOfArtifacts(db: Database): AsyncIterable<ReferencedBlob> {
  const artifacts = db.selectFrom('artifacts').select(artifactColumns).where('state', '<>', 'unknown')
  const readPage = (after: string) => artifacts.where('id', '>', after).orderBy('id').limit(BATCH).execute()
  for await (const row of readAll(readPage)) yield* listOfArtifact(row)
}

async function* readAll<R extends { id: string }>(
  readPage: (after: string) => Promise<R[]>,
): AsyncIterable<R> {
  for (let after: string | undefined = ''; after !== undefined; ) {
    const rows = await readPage(after)
    yield* rows
    after = rows.length < BATCH ? undefined : rows.at(-1)?.id
  }
}

/** Uses the sweeper's rule that an original is needed until it is converted and acknowledged. */
function* listOfArtifact(
  row: Pick<Selectable<ArtifactTable>, (typeof artifactColumns)[number]>,
): Iterable<ReferencedBlob> {
  const { state, blob, received_bytes: receivedBytes, fence } = row
  if (blob === null) return
  if (state === 'uploading') {
    if (receivedBytes > 0)
      yield { store: 'artifacts', name: blob, sizeBytes: receivedBytes, uploadFence: fence }
    return
  }
  if (state !== 'ready' || row.acknowledged === 0 || row.served_blob === blob)
    yield toWhole('artifacts', blob, receivedBytes)
  if (row.served_blob !== null && row.served_blob !== blob)
    yield toWhole('artifacts', row.served_blob, row.served_bytes ?? 0)
  if (row.poster_blob !== null) yield toWhole('artifacts', row.poster_blob, row.poster_bytes ?? 0)
}

function toWhole(store: StoreName, name: string, sizeBytes: number): ReferencedBlob {
  return { store, name, sizeBytes, uploadFence: undefined }
}
