/** Adds indexes for sorted lists of agents, artifacts, files, users and keys. */
import { type Kysely, type RawBuilder, sql } from 'kysely'

const name = sql`lower(name)`
const created = sql.ref('created_at')

/** Each index's name, its table, the column that selects the rows, and the sort key. */
const indexes: readonly (readonly [string, string, string | undefined, RawBuilder<unknown>])[] = [
  ['agents_by_owner_name', 'agents', 'parent_key_id', name],
  ['agents_by_owner_update', 'agents', 'parent_key_id', sql.ref('updated_at')],
  ['artifacts_by_owner_name', 'artifacts', 'parent_key_id', sql`lower(coalesce(name, filename, id))`],
  ['artifacts_by_owner_length', 'artifacts', 'parent_key_id', sql`coalesce(size_bytes, 0)`],
  ['files_by_owner_name', 'files', 'parent_key_id', sql`lower(filename)`],
  ['files_by_owner_length', 'files', 'parent_key_id', sql.ref('size_bytes')],
  ['users_by_creation', 'users', undefined, created],
  ['users_by_last_visit', 'users', undefined, sql.ref('last_seen_at')],
  ['parent_keys_by_creation', 'parent_keys', undefined, created],
  ['parent_keys_by_name', 'parent_keys', undefined, name],
  ['parent_keys_by_last_use', 'parent_keys', undefined, sql`coalesce(last_used_at, 0)`],
]

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const [index, table, owner, key] of indexes) {
    const columns = [...(owner === undefined ? [] : [sql.ref(owner)]), key, sql.ref('id')]
    await sql`create index ${sql.ref(index)} on ${sql.table(table)} (${sql.join(columns)})`.execute(db)
  }
}

export async function down(db: Kysely<unknown>): Promise<void> {
  for (const [index] of indexes) await db.schema.dropIndex(index).execute()
}
