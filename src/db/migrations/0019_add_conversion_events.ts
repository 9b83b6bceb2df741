/** Lets a job carry an event and outlive its artifact, because a rejected artifact has an event too. */
import type { Kysely } from 'kysely'

const kept = ['kind', 'blob', 'fence', 'is_taken', 'refusals', 'failures', 'next_at'] as const

/** The columns used here, as they were before later migrations. */
interface Then {
  readonly jobs: Readonly<Record<(typeof kept)[number], string | number>>
  readonly former_jobs: Then['jobs']
}

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('jobs').renameTo('former_jobs').execute()
  await db.schema
    .createTable('jobs')
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('blob', 'text', (column) => column.notNull())
    .addColumn('event', 'text')
    .addColumn('fence', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('is_taken', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('refusals', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('failures', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('next_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('jobs_key', ['blob', 'kind'])
    .execute()
  await copyJobs(db as Kysely<Then>)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await (db as Kysely<Then>).deleteFrom('jobs').where('kind', '=', 'converted').execute()
  await db.schema.alterTable('jobs').renameTo('former_jobs').execute()
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
  await copyJobs(db as Kysely<Then>)
}

async function copyJobs(db: Kysely<Then>): Promise<void> {
  await db
    .insertInto('jobs')
    .columns([...kept])
    .expression(db.selectFrom('former_jobs').select([...kept]))
    .execute()
  // Dropping the old table also drops its index, so that the new index can have the same name.
  await db.schema.dropTable('former_jobs').execute()
  await db.schema.createIndex('jobs_by_due').on('jobs').columns(['kind', 'next_at']).execute()
}
