/** Creates the tables for parent keys, credentials, agents and agent versions. */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('parent_keys')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('hint', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('rotated_at', 'bigint')
    .addColumn('revoked_at', 'bigint')
    .addColumn('last_used_at', 'bigint')
    .execute()

  await db.schema
    .createTable('agents')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('parent_key_id', 'text', (column) => column.notNull().references('parent_keys.id'))
    .addColumn('version', 'integer', (column) => column.notNull())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('source', 'text', (column) => column.notNull())
    .addColumn('format', 'text', (column) => column.notNull())
    .addColumn('key_id', 'text', (column) => column.notNull().unique())
    .addColumn('key_sealed', 'text', (column) => column.notNull())
    .addColumn('key_hint', 'text', (column) => column.notNull())
    .addColumn('position', 'bigint', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('agents_by_owner').on('agents').columns(['parent_key_id', 'position']).execute()

  await db.schema
    .createTable('agent_versions')
    .addColumn('agent_id', 'text', (column) => column.notNull().references('agents.id').onDelete('cascade'))
    .addColumn('version', 'integer', (column) => column.notNull())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('source', 'text', (column) => column.notNull())
    .addColumn('format', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('agent_versions_key', ['agent_id', 'version'])
    .execute()

  await db.schema
    .createTable('credentials')
    .addColumn('digest', 'text', (column) => column.primaryKey())
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('parent_key_id', 'text', (column) => column.notNull().references('parent_keys.id'))
    .addColumn('agent_id', 'text', (column) => column.references('agents.id').onDelete('cascade'))
    .addColumn('valid_until', 'bigint')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('credentials_by_parent_key').on('credentials').column('parent_key_id').execute()
  await db.schema.createIndex('credentials_by_agent').on('credentials').column('agent_id').execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  for (const table of ['credentials', 'agent_versions', 'agents', 'parent_keys']) {
    await db.schema.dropTable(table).execute()
  }
}
