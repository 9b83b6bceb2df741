/**
 * Defines the tables of stored conversations. Booleans are 0 or 1, times are Unix seconds, and JSON is stored
 * as text.
 */
import type { Generated, Kysely } from 'kysely'

export interface ConversationTable {
  id: string
  tenant: string
  agent_id: string
  visitor_id: string | null
  channel: 'widget' | 'api' | 'console'
  mode: Generated<'model' | 'waiting' | 'person'>
  mode_since: number
  /** The person who answers: an email address or another name; null unless the mode is `person`. */
  assignee: string | null
  /** Time at which the mode changes if no person has answered; null if no answer is expected. */
  answer_due: number | null
  /** The running turn that locks the conversation; null without one. */
  busy_turn: string | null
  /** The first 80 characters of the first user message; null if there is no text. */
  title: string | null
  /** JSON: at most 16 pairs of strings. */
  metadata: Generated<string>
  turns: Generated<number>
  items: Generated<number>
  bytes: Generated<number>
  /**
   * Increases when the turns, items, mode, metadata, ratings, notes or tags change, so that readers can
   * detect which state is newer.
   */
  revision: Generated<number>
  up: Generated<number>
  down: Generated<number>
  failures: Generated<number>
  prompt_tokens: Generated<number>
  completion_tokens: Generated<number>
  /** Nano-dollars: the sum of the turns whose cost is known; null if none is. */
  cost: number | null
  created_at: number
  last_at: number
  /** Unique timestamp in microseconds since the epoch; lists are ordered by it. */
  position: number
  expires_at: number
}

export type TurnStatus = 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled'

export interface TurnTable {
  id: string
  tenant: string
  agent_id: string
  visitor_id: string | null
  conversation_id: string
  /** The position in the conversation, from 1. */
  number: number
  /** The turn whose items precede this one's input; null for the first turn of a chain. */
  previous_id: string | null
  /** 1 for a branch, which is not part of the conversation's history. */
  is_branch: Generated<number>
  /** The visitor's action that replaced the turn and made it a branch; null for a current turn (ADR 0076). */
  replaced: 'edited' | 'regenerated' | 'removed' | null
  /** The turn that replaced this one; null if none did. */
  replaced_by: string | null
  response_id: string | null
  /** SHA-256 of the capability in the event ids of a chat stream. */
  stream_digest: string | null
  /**
   * SHA-256 of the caller and the `Idempotency-Key` or `client_id`; null without a key, or once 24 hours have
   * passed since the turn was created.
   */
  idempotency_digest: string | null
  /** SHA-256 of the request that sent the idempotency key; null without a key. */
  request_digest: string | null
  kind: 'model' | 'person' | 'continuation'
  status: TurnStatus
  /** Why an incomplete turn ended: `max_output_tokens`, `content_filter` or `interrupted`. */
  reason: string | null
  error_code: string | null
  background: number
  on_disconnect: 'cancel' | 'continue'
  /** The id of the process that runs the turn; a process gets a new id at each start. */
  owner: string | null
  lease_until: number | null
  cancel_requested: Generated<number>
  /** Time at which another replica last announced that it is reading the running turn; null if none has. */
  read_at: number | null
  /** The number of the last event in the log, set at the end of the turn; -1 without events. */
  last_seq: Generated<number>
  agent_version: number | null
  provider: string | null
  model: string | null
  /** JSON: the request without its input, used to render the response again. */
  request: string
  diagnostics: Generated<string>
  prompt_tokens: Generated<number>
  completion_tokens: Generated<number>
  cached_tokens: Generated<number>
  reasoning_tokens: Generated<number>
  is_estimated: Generated<number>
  /** Nano-dollars; null if the turn has not ended or a model has no price. */
  cost: number | null
  first_event_ms: number | null
  duration_ms: number | null
  request_id: string
  /** The number of times that clients have continued the turn's stream after a lost connection. */
  resumes: Generated<number>
  created_at: number
  ended_at: number | null
}

export interface ItemTable {
  n: Generated<number>
  id: string
  conversation_id: string
  /** Null for an item that belongs to no turn. */
  turn_id: string | null
  position: number
  type: 'message' | 'function_call' | 'function_call_output' | 'reasoning'
  role: string | null
  author: 'visitor' | 'model' | 'person' | 'page' | 'tool' | 'service'
  author_name: string | null
  status: 'completed' | 'incomplete'
  for_visitor: number
  for_model: number
  client_id: string | null
  /** JSON: the item in the format of OpenAI's API. */
  body: string
  /** The name of the tool that a `function_call` calls; null for other items. */
  name: string | null
  bytes: number
  created_at: number
}

/** The words of a message, in order and separated by spaces (ADR 0069). */
export interface ItemTextTable {
  n: number
  conversation_id: string
  text: string
}

export interface RatingTable {
  turn_id: string
  source: 'visitor' | 'owner' | 'api'
  value: 1 | -1
  reason: string | null
  comment: string | null
  created_at: number
  updated_at: number
}

export interface ConversationTagTable {
  conversation_id: string
  tag: string
}

export interface ConversationNoteTable {
  id: string
  conversation_id: string
  /** The email address of the user, or the id of the key, that wrote the note. */
  author: string
  text: string
  created_at: number
}

/** A sequence of consecutive events in a turn, encoded by `src/conversations/turns/segments.ts`. */
export interface TurnEventTable {
  turn_id: string
  first_seq: number
  last_seq: number
  body: Buffer
}

/**
 * Blobs that contain long strings from items: images, audio, files and tool results. A row whose name is
 * `upload:` followed by an artifact's id keeps a visitor's upload.
 */
export interface ItemDataTable {
  name: string
  item_id: string
  conversation_id: string
  turn_id: string | null
  bytes: number
  /** 1 once the item is deleted, until its blob is deleted as well. */
  is_deleted: number
}

/** The deletion of all of a visitor's data. The rows are never deleted, and contain no personal data. */
export interface ErasureTable {
  id: string
  tenant: string
  visitor_id: string
  /** The visitor's agent; empty for a visitor who is not bound to an agent. */
  agent_id: string
  /** The name of the actor in the audit log. */
  requested_by: string
  status: 'running' | 'done'
  /** JSON: the number of deleted rows of each kind. */
  counts: string
  /** JSON: the ids of the deleted conversations; empty when the erasure is done. */
  conversations: string
  /**
   * SHA-256 of the sorted ids of the deleted conversations, separated by newlines; null until the erasure is
   * done.
   */
  digest: string | null
  /** When another process may continue the erasure; null when the erasure is done. */
  lease_until: number | null
  started_at: number
  finished_at: number | null
}

/** The events that webhooks receive; one row per event and webhook. */
export interface WebhookDeliveryTable {
  id: string
  webhook_id: string
  /** Null for an event that is not about one conversation. */
  conversation_id: string | null
  type: string
  /** JSON: the body of the request. */
  body: string
  /** 1 if the body contains text from the conversation. */
  has_text: number
  state: 'pending' | 'delivered' | 'failed'
  /** The number of attempts since the delivery was created or last retried. */
  attempt: Generated<number>
  /**
   * When the next attempt is due; during an attempt, when another process may repeat it. Null unless pending.
   */
  next_at: number | null
  /** Increases with each claim, so that a slow process cannot overwrite another process's result. */
  fence: Generated<number>
  /** The HTTP status of the last attempt; null without a response. */
  last_status: number | null
  last_error: string | null
  created_at: number
}

export interface VisitorTable {
  id: string
  tenant: string
  kind: 'anonymous' | 'verified' | 'named'
  /** The authority that identifies the visitor; for anonymous visitors, the agent. */
  issuer: string
  /** Unique for its issuer; the visitor's id for anonymous visitors. */
  subject: string
  email: string | null
  name: string | null
  /** JSON: the issuer's claims about the visitor. */
  claims: Generated<string>
  created_at: number
  seen_at: number
}

/** Declared as a type, because Kysely does not accept an interface as a set of tables. */
export type ConversationTables = {
  conversations: ConversationTable
  turns: TurnTable
  items: ItemTable
  turn_events: TurnEventTable
  item_data: ItemDataTable
  item_texts: ItemTextTable
  ratings: RatingTable
  conversation_tags: ConversationTagTable
  conversation_notes: ConversationNoteTable
  visitors: VisitorTable
  webhook_deliveries: WebhookDeliveryTable
  erasures: ErasureTable
}

/** The tables that contain the data of conversations and can become large. */
export const conversationTableNames = [
  'conversations',
  'turns',
  'items',
  'turn_events',
  'item_texts',
  'ratings',
  'conversation_tags',
  'conversation_notes',
] as const satisfies (keyof ConversationTables)[]

export type ConversationDb = Kysely<ConversationTables>

/**
 * A transaction that can run in the thread that writes to SQLite (ADR 0054). Its input and output are plain
 * data.
 */
export interface Procedure<Input, Output> {
  /** The URL of the module that exports the procedure as `name`. */
  readonly file: string
  readonly name: string
  /** May await only `trx`. With SQLite, other procedures can run in the same transaction. */
  readonly run: (trx: ConversationDb, input: Input) => Promise<Output>
}

/** Runs a procedure; resolves when its transaction is committed. */
export type RunProcedure = <Input, Output>(
  procedure: Procedure<Input, Output>,
  input: Input,
) => Promise<Output>

/** With SQLite, reads and writes use different connections, so that reads never wait for a commit. */
export interface ConversationDatabase {
  readonly read: ConversationDb
  readonly write: ConversationDb
  /**
   * Runs transactions that are frequent, or that encode or render a lot of data. With SQLite, they run in a
   * worker thread, so that they do not block the event loop.
   */
  readonly run: RunProcedure
  /**
   * With SQLite, removes deleted text from the write-ahead log. Returns false if another process is reading
   * the log.
   */
  scrub(): Promise<boolean>
  /**
   * With PostgreSQL, frees the space of deleted rows, at most once an hour for each table. `hasDeleted`
   * indicates whether the caller has just deleted rows. PostgreSQL's statistics show which rows other
   * processes have deleted.
   */
  vacuum(hasDeleted: boolean, signal?: AbortSignal): Promise<void>
  /** Lets only one replica run maintenance at a time. The lock is held until the transaction ends. */
  lockMaintenance(trx: ConversationDb): Promise<void>
}
