/** Creates the table for upload jobs, and adds the jobs of existing uploads. */
import type { Kysely } from 'kysely'

/** The columns that this migration uses; must not change when later migrations change the table. */
interface Then {
  readonly artifacts: { readonly blob: string; readonly state: string; readonly acknowledged: number }
  readonly jobs: { readonly kind: string; readonly blob: string; readonly next_at: number }
}

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('jobs')
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('blob', 'text', (column) => column.notNull().references('artifacts.blob').onDelete('cascade'))
    .addColumn('fence', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('is_taken', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('refusals', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('failures', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('next_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('jobs_pk', ['blob', 'kind'])
    .execute()
  await db.schema.createIndex('jobs_by_due').on('jobs').columns(['kind', 'next_at']).execute()
  const then = db as Kysely<Then>
  const uploads = (kind: string) =>
    then
      .selectFrom('artifacts')
      .select(({ lit, ref, val }) => [val(kind).as('kind'), ref('blob').as('blob'), lit(0).as('next_at')])
  const columns = ['kind', 'blob', 'next_at'] as const
  await then
    .insertInto('jobs')
    .columns(columns)
    .expression(uploads('convert').where('state', '=', 'processing'))
    .execute()
  // Adds a job for every unacknowledged upload, because no handler was called before this migration.
  await then
    .insertInto('jobs')
    .columns(columns)
    .expression(uploads('hook').where('state', 'in', ['processing', 'ready']).where('acknowledged', '=', 0))
    .execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropTable('jobs').execute()
}
