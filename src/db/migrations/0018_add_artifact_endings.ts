/** Adds a column for the SHA-256 of uploads, and a table that records why artifacts no longer exist. */
import type { Kysely } from 'kysely'

/** The columns used here, as they were before later migrations. */
interface Then {
  readonly artifacts: {
    readonly state: string
    readonly checksum: string | null
    readonly sha256: string | null
  }
}

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('artifacts').addColumn('sha256', 'text').execute()
  // The checksum of a complete upload was verified.
  await (db as Kysely<Then>)
    .updateTable('artifacts')
    .set(({ ref }) => ({ sha256: ref('checksum') }))
    .where('state', 'in', ['processing', 'ready'])
    .execute()
  await db.schema
    .createTable('artifact_endings')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('parent_key_id', 'text', (column) => column.notNull().references('parent_keys.id'))
    .addColumn('related_to', 'text')
    .addColumn('reason', 'text', (column) => column.notNull())
    .addColumn('ended_at', 'bigint', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('artifact_endings_by_time').on('artifact_endings').column('ended_at').execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropTable('artifact_endings').execute()
  await db.schema.alterTable('artifacts').dropColumn('sha256').execute()
}
