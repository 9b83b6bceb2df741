/**
 * Creates the tables of stored conversations: in a separate file with SQLite, in the main database with
 * PostgreSQL.
 */
import { type Kysely, type Migration, PostgresAdapter, sql } from 'kysely'

async function createTables(db: Kysely<unknown>): Promise<void> {
  const isPostgres = db.getExecutor().adapter instanceof PostgresAdapter
  await createConversations(db)
  await createTurns(db)
  await createItems(db, isPostgres)
  await createEvents(db, isPostgres)
}

async function createConversations(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('conversations')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('tenant', 'text', (column) => column.notNull())
    .addColumn('agent_id', 'text', (column) => column.notNull())
    .addColumn('visitor_id', 'text')
    .addColumn('channel', 'text', (column) => column.notNull())
    .addColumn('mode', 'text', (column) => column.notNull().defaultTo('model'))
    .addColumn('mode_since', 'bigint', (column) => column.notNull())
    .addColumn('assignee', 'text')
    .addColumn('busy_turn', 'text')
    .addColumn('title', 'text')
    .addColumn('metadata', 'text', (column) => column.notNull().defaultTo('{}'))
    .addColumn('turns', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('items', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('bytes', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('revision', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('up', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('down', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('failures', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('prompt_tokens', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('completion_tokens', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('cost_micros', 'bigint')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('last_at', 'bigint', (column) => column.notNull())
    .addColumn('position', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint', (column) => column.notNull())
    .execute()
  await createIndex(db, 'conversations', 'agent', ['tenant', 'agent_id', 'position'])
  await createIndex(db, 'conversations', 'visitor', ['visitor_id', 'position'])
  await createIndex(db, 'conversations', 'expiry', ['expires_at'])
}

async function createTurns(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('turns')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('tenant', 'text', (column) => column.notNull())
    .addColumn('agent_id', 'text', (column) => column.notNull())
    .addColumn('visitor_id', 'text')
    .addColumn('conversation_id', 'text', (column) =>
      column.notNull().references('conversations.id').onDelete('cascade'),
    )
    .addColumn('number', 'integer', (column) => column.notNull())
    .addColumn('previous_id', 'text')
    .addColumn('response_id', 'text', (column) => column.unique())
    .addColumn('stream_digest', 'text', (column) => column.unique())
    .addColumn('idempotency_digest', 'text', (column) => column.unique())
    .addColumn('request_digest', 'text')
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('reason', 'text')
    .addColumn('error_code', 'text')
    .addColumn('background', 'integer', (column) => column.notNull())
    .addColumn('on_disconnect', 'text', (column) => column.notNull())
    .addColumn('owner', 'text')
    .addColumn('lease_until', 'bigint')
    .addColumn('cancel_requested', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('last_seq', 'integer', (column) => column.notNull().defaultTo(-1))
    .addColumn('agent_version', 'integer')
    .addColumn('provider', 'text')
    .addColumn('model', 'text')
    .addColumn('request', 'text', (column) => column.notNull())
    .addColumn('diagnostics', 'text', (column) => column.notNull().defaultTo('{}'))
    .addColumn('prompt_tokens', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('completion_tokens', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('cached_tokens', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('reasoning_tokens', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('is_estimated', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('cost_micros', 'bigint')
    .addColumn('first_event_ms', 'integer')
    .addColumn('duration_ms', 'integer')
    .addColumn('request_id', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('ended_at', 'bigint')
    .addUniqueConstraint('turns_by_number', ['conversation_id', 'number'])
    .execute()
  await sql`create index turns_running on turns (lease_until) where lease_until is not null`.execute(db)
  await createIndex(db, 'turns', 'end', ['ended_at'])
}

async function createItems(db: Kysely<unknown>, isPostgres: boolean): Promise<void> {
  await db.schema
    .createTable('items')
    .addColumn('n', isPostgres ? 'bigint' : 'integer', (column) =>
      isPostgres ? column.primaryKey().generatedByDefaultAsIdentity() : column.primaryKey().autoIncrement(),
    )
    .addColumn('id', 'text', (column) => column.notNull().unique())
    .addColumn('conversation_id', 'text', (column) =>
      column.notNull().references('conversations.id').onDelete('cascade'),
    )
    .addColumn('turn_id', 'text')
    .addColumn('position', 'integer', (column) => column.notNull())
    .addColumn('type', 'text', (column) => column.notNull())
    .addColumn('role', 'text')
    .addColumn('author', 'text', (column) => column.notNull())
    .addColumn('author_name', 'text')
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('for_visitor', 'integer', (column) => column.notNull())
    .addColumn('for_model', 'integer', (column) => column.notNull())
    .addColumn('client_id', 'text')
    .addColumn('body', 'text', (column) => column.notNull())
    .addColumn('bytes', 'integer', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addUniqueConstraint('items_by_position', ['conversation_id', 'position'])
    .addUniqueConstraint('items_by_client', ['conversation_id', 'client_id'])
    .execute()
  await createIndex(db, 'items', 'turn', ['turn_id'])
}

async function createEvents(db: Kysely<unknown>, isPostgres: boolean): Promise<void> {
  await db.schema
    .createTable('turn_events')
    .addColumn('turn_id', 'text', (column) => column.notNull().references('turns.id').onDelete('cascade'))
    .addColumn('first_seq', 'integer', (column) => column.notNull())
    .addColumn('last_seq', 'integer', (column) => column.notNull())
    .addColumn('body', isPostgres ? 'bytea' : 'blob', (column) => column.notNull())
    .addPrimaryKeyConstraint('turn_events_pk', ['turn_id', 'first_seq'])
    .execute()
}

async function createVisitors(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('visitors')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('tenant', 'text', (column) => column.notNull())
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('issuer', 'text', (column) => column.notNull())
    .addColumn('subject', 'text', (column) => column.notNull())
    .addColumn('email', 'text')
    .addColumn('name', 'text')
    .addColumn('claims', 'text', (column) => column.notNull().defaultTo('{}'))
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('seen_at', 'bigint', (column) => column.notNull())
    .addUniqueConstraint('visitors_by_subject', ['tenant', 'kind', 'issuer', 'subject'])
    .execute()
  await createIndex(db, 'visitors', 'email', ['tenant', 'email'])
  await createIndex(db, 'visitors', 'seen', ['seen_at'])
}

function createIndex(db: Kysely<unknown>, table: string, by: string, columns: string[]): Promise<void> {
  return db.schema.createIndex(`${table}_by_${by}`).on(table).columns(columns).execute()
}

/** Adds an index for lists of a tenant's conversations that are not filtered by agent. */
function indexPositions(db: Kysely<unknown>): Promise<void> {
  return createIndex(db, 'conversations', 'position', ['tenant', 'position'])
}

/**
 * Adds a flag for turns that are outside their conversation's history, and the time at which a replica last
 * read a turn.
 */
async function addMainLine(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('turns')
    .addColumn('is_branch', 'integer', (column) => column.notNull().defaultTo(0))
    .execute()
  await db.schema.alterTable('turns').addColumn('read_at', 'bigint').execute()
  await sql`update turns set is_branch = 1 where previous_id is not null`.execute(db)
}

/**
 * Creates the table for the items' blobs. It has no foreign key, because its rows remain until the blobs are
 * deleted.
 */
async function createItemData(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('item_data')
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('item_id', 'text', (column) => column.notNull())
    .addColumn('conversation_id', 'text', (column) => column.notNull())
    .addColumn('turn_id', 'text')
    .addColumn('bytes', 'bigint', (column) => column.notNull())
    .addColumn('is_deleted', 'integer', (column) => column.notNull().defaultTo(0))
    .execute()
  await createIndex(db, 'item_data', 'item', ['item_id'])
  await createIndex(db, 'item_data', 'conversation', ['conversation_id'])
  await createIndex(db, 'item_data', 'turn', ['turn_id'])
  await sql`create index item_data_deleted on item_data (name) where is_deleted = 1`.execute(db)
}

/**
 * Creates the table `item_texts`, which contains the words of items, and its search index (ADR 0069). SQLite
 * overwrites deleted words in its index (`secure-delete`).
 */
async function createSearch(db: Kysely<unknown>, isPostgres: boolean): Promise<void> {
  await db.schema
    .createTable('item_texts')
    .addColumn('n', isPostgres ? 'bigint' : 'integer', (column) =>
      column.primaryKey().references('items.n').onDelete('cascade'),
    )
    .addColumn('conversation_id', 'text', (column) => column.notNull())
    .addColumn('text', 'text', (column) => column.notNull())
    .execute()
  await createIndex(db, 'item_texts', 'conversation', ['conversation_id'])
  if (isPostgres) {
    await sql`create index item_search on item_texts
      using gin (array_to_tsvector(string_to_array(text, ' ')))`.execute(db)
    return
  }
  await sql`create virtual table item_search using fts5
    (text, content = 'item_texts', content_rowid = 'n', detail = none, columnsize = 0, tokenize = ascii)`.execute(
    db,
  )
  await sql`insert into item_search (item_search, rank) values ('secure-delete', 1)`.execute(db)
  await sql`create trigger item_texts_added after insert on item_texts begin
    insert into item_search (rowid, text) values (new.n, new.text); end`.execute(db)
  await sql`create trigger item_texts_deleted after delete on item_texts begin
    insert into item_search (item_search, rowid, text) values ('delete', old.n, old.text); end`.execute(db)
}

/**
 * Creates the search index and the tables for ratings, tags and notes, and adds columns to items and turns.
 */
async function createLog(db: Kysely<unknown>): Promise<void> {
  await createSearch(db, db.getExecutor().adapter instanceof PostgresAdapter)
  await createRatings(db)
  await createTagsAndNotes(db)
  await db.schema.alterTable('items').addColumn('name', 'text').execute()
  await db.schema
    .alterTable('turns')
    .addColumn('resumes', 'integer', (column) => column.notNull().defaultTo(0))
    .execute()
}

async function createRatings(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('ratings')
    .addColumn('turn_id', 'text', (column) => column.notNull().references('turns.id').onDelete('cascade'))
    .addColumn('source', 'text', (column) => column.notNull())
    .addColumn('value', 'integer', (column) => column.notNull())
    .addColumn('reason', 'text')
    .addColumn('comment', 'text')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('ratings_pk', ['turn_id', 'source'])
    .execute()
  await createIndex(db, 'ratings', 'time', ['created_at'])
}

async function createTagsAndNotes(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('conversation_tags')
    .addColumn('conversation_id', 'text', (column) =>
      column.notNull().references('conversations.id').onDelete('cascade'),
    )
    .addColumn('tag', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('conversation_tags_pk', ['conversation_id', 'tag'])
    .execute()
  await createIndex(db, 'conversation_tags', 'tag', ['tag'])
  await db.schema
    .createTable('conversation_notes')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('conversation_id', 'text', (column) =>
      column.notNull().references('conversations.id').onDelete('cascade'),
    )
    .addColumn('author', 'text', (column) => column.notNull())
    .addColumn('text', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .execute()
  await createIndex(db, 'conversation_notes', 'conversation', ['conversation_id', 'created_at'])
}

/** The table has no foreign key, because with SQLite, webhooks are stored in a different file. */
async function createWebhookDeliveries(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('webhook_deliveries')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('webhook_id', 'text', (column) => column.notNull())
    .addColumn('conversation_id', 'text')
    .addColumn('type', 'text', (column) => column.notNull())
    .addColumn('body', 'text', (column) => column.notNull())
    .addColumn('has_text', 'integer', (column) => column.notNull())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('attempt', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('next_at', 'bigint')
    .addColumn('fence', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('last_status', 'integer')
    .addColumn('last_error', 'text')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .execute()
  await createIndex(db, 'webhook_deliveries', 'webhook', ['webhook_id', 'created_at', 'id'])
  await createIndex(db, 'webhook_deliveries', 'conversation', ['conversation_id'])
  await createIndex(db, 'webhook_deliveries', 'creation', ['created_at'])
  await sql`create index webhook_deliveries_due on webhook_deliveries (next_at) where next_at is not null`.execute(
    db,
  )
}

/**
 * Adds the time by which a person must answer, and an index of the conversations that the model does not
 * answer.
 */
async function addHandover(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('conversations').addColumn('answer_due', 'bigint').execute()
  await sql`create index conversations_by_mode on conversations (tenant, mode, mode_since) where mode <> 'model'`.execute(
    db,
  )
  await sql`create index conversations_due on conversations (answer_due) where answer_due is not null`.execute(
    db,
  )
}

/**
 * Creates the table of visitor erasures. It has no foreign key, because its rows remain after the visitor is
 * deleted; they contain no personal data.
 */
async function createErasures(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('erasures')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('tenant', 'text', (column) => column.notNull())
    .addColumn('visitor_id', 'text', (column) => column.notNull())
    .addColumn('agent_id', 'text', (column) => column.notNull())
    .addColumn('requested_by', 'text', (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('counts', 'text', (column) => column.notNull())
    .addColumn('conversations', 'text', (column) => column.notNull())
    .addColumn('digest', 'text')
    .addColumn('lease_until', 'bigint')
    .addColumn('started_at', 'bigint', (column) => column.notNull())
    .addColumn('finished_at', 'bigint')
    .execute()
  await createIndex(db, 'erasures', 'visitor', ['visitor_id'])
  await sql`create index erasures_running on erasures (lease_until) where lease_until is not null`.execute(db)
  await createIndex(db, 'visitors', 'tenant', ['tenant', 'seen_at', 'id'])
}

/** Adds columns that mark the turns that a visitor has replaced (ADR 0076). */
async function addReplacements(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('turns').addColumn('replaced', 'text').execute()
  await db.schema.alterTable('turns').addColumn('replaced_by', 'text').execute()
}

/** Renames the cost columns, which were empty until now; all costs are in nano-dollars. */
async function renameCosts(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('turns').renameColumn('cost_micros', 'cost').execute()
  await db.schema.alterTable('conversations').renameColumn('cost_micros', 'cost').execute()
}

/** Counts turns that an error cut off as failures, like turns that failed before their answer began. */
async function countCutOff(db: Kysely<unknown>): Promise<void> {
  await sql`update conversations set failures = failures + (select count(*) from turns
    where turns.conversation_id = conversations.id and status = 'incomplete' and error_code is not null)
    where id in (select conversation_id from turns
    where status = 'incomplete' and error_code is not null)`.execute(db)
}

/** Adds an index for lists of a tenant's conversations that are sorted by activity. */
function indexActivity(db: Kysely<unknown>): Promise<void> {
  return createIndex(db, 'conversations', 'activity', ['tenant', 'last_at', 'position'])
}

/**
 * These names sort after those of the main database's migrations, because PostgreSQL stores both in one
 * database.
 */
export const conversationMigrations: Record<string, Migration> = {
  '1001_create_conversations': { up: createTables },
  '1002_index_conversations_by_position': { up: indexPositions },
  '1003_create_visitors': { up: createVisitors },
  '1004_add_main_line': { up: addMainLine },
  '1005_create_item_data': { up: createItemData },
  '1006_create_log': { up: createLog },
  '1007_create_webhook_deliveries': { up: createWebhookDeliveries },
  '1008_create_erasures': { up: createErasures },
  '1009_add_handover': { up: addHandover },
  '1010_add_replacements': { up: addReplacements },
  '1011_rename_costs': { up: renameCosts },
  '1012_count_cut_off_turns': { up: countCutOff },
  '1013_index_conversations_by_activity': { up: indexActivity },
}
