/** What stores run their queries on. */
import type { Kysely } from 'kysely'
import type { Tables } from './tables.ts'

/** A connection or an open transaction. */
export type Database = Kysely<Tables>
