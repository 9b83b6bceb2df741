/** Which bytes the rows speak of: what a backup must pin, and what an installation must have that was put back. */
import type { Selectable } from 'kysely'
import type { Database } from '../db/database.ts'
import type { ArtifactTable } from '../db/tables.ts'

/** Rows read in one statement. */
const BATCH = 1_000

export type StoreName = 'files' | 'artifacts'

/** Bytes that a row speaks of. */
export interface ReferencedBlob {
  readonly store: StoreName
  readonly name: string
  readonly sizeBytes: number
  /** The fence of the upload that it grows in; undefined for a blob that is whole. */
  readonly uploadFence: number | undefined
}

/** All of them, in no order; a schema that is too old for a table has none of its. */
export async function* listReferencedBlobs(db: Database): AsyncIterable<ReferencedBlob> {
  const tables = new Set((await db.introspection.getTables()).map(({ name }) => name))
  if (tables.has('files')) yield* listOfFiles(db)
  if (tables.has('artifacts')) yield* listOfArtifacts(db)
}

async function* listOfFiles(db: Database): AsyncIterable<ReferencedBlob> {
  for (let after = ''; ; ) {
    const rows = await db
      .selectFrom('files')
      .select(['id', 'blob', 'size_bytes'])
      .where('id', '>', after)
      .orderBy('id')
      .limit(BATCH)
      .execute()
    for (const { blob, size_bytes } of rows) yield toWhole('files', blob, size_bytes)
    if (rows.length < BATCH) return
    after = rows.at(-1)?.id ?? ''
  }
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
  for (let after = ''; ; ) {
    const rows = await db
      .selectFrom('artifacts')
      .select(artifactColumns)
      .where('id', '>', after)
      .where('state', '<>', 'unknown')
      .orderBy('id')
      .limit(BATCH)
      .execute()
    for (const row of rows) yield* listOfArtifact(row)
    if (rows.length < BATCH) return
    after = rows.at(-1)?.id ?? ''
  }
}

type ArtifactBlobs = Pick<Selectable<ArtifactTable>, (typeof artifactColumns)[number]>

/** As the sweeper of artifacts has it: what was sent is needed until it is converted and the host has seen it. */
function* listOfArtifact(row: ArtifactBlobs): Iterable<ReferencedBlob> {
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
