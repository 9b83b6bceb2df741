/** The tables, one interface each. Booleans are 0/1, times are Unix seconds, JSON is text: the same on every dialect. */
import type { Generated } from 'kysely'

/** A parent key's record; its id is the key's public part and the name of the tenant. */
export interface ParentKeyTable {
  /** The 12 base62 characters inside the key. */
  id: string
  name: string
  /** Prefix and last four characters of the newest secret. */
  hint: string
  created_at: number
  rotated_at: number | null
  /** Set once, for good. */
  revoked_at: number | null
  /** At most a minute old; null when never used. */
  last_used_at: number | null
  /** Whose key it is; null for one that nobody has claimed. */
  user_id: string | null
  /** Made for its user unasked, and revoked when they claim another. */
  is_automatic: Generated<number>
}

/** Somebody whom a proxy has signed in. */
export interface UserTable {
  id: string
  /** Who it is: in lower case and NFC. */
  email: string
  /** As the proxy told it last; for show. */
  name: string
  username: string | null
  /** JSON: a list of names. */
  groups: string
  /** The tenant they work in; null for the moment in which both are made. */
  active_key_id: string | null
  created_at: number
  /** At most a minute old. */
  last_seen_at: number
}

/** What a presented key is looked up by; a rotated key has two rows while both secrets are valid. */
export interface CredentialTable {
  /** SHA-256 of the whole key text. */
  digest: string
  kind: 'parent' | 'agent'
  /** The tenant. */
  parent_key_id: string
  /** Null for a parent key. */
  agent_id: string | null
  /** The secret stops working at this second; null while it is the current one. */
  valid_until: number | null
  created_at: number
}

/** An agent as its owner last wrote it. */
export interface AgentTable {
  id: string
  parent_key_id: string
  /** Counts the writes; 1 at creation. */
  version: number
  name: string
  /** The definition as it was posted, byte for byte. */
  source: string
  format: 'yaml' | 'markdown'
  /** The agent key's 12 public characters. */
  key_id: string
  /** The agent key under the installation's secret: the list returns it. */
  key_sealed: string
  key_hint: string
  /** Orders agents by creation, also within a second; microseconds since the epoch, made unique. */
  position: number
  created_at: number
  updated_at: number
  /** JSON, as `src/models/policy.ts` has it; null when nobody has written one. */
  model_policy: string | null
  model_policy_updated_at: number | null
}

/** An earlier definition of an agent. */
export interface AgentVersionTable {
  agent_id: string
  version: number
  name: string
  source: string
  format: 'yaml' | 'markdown'
  /** When this definition was written. */
  created_at: number
}

/** One call of a model, kept for the retention time. */
export interface UsageCallTable {
  /** Made here, and it grows with time: the milliseconds since the epoch at which the call began are its first 15 digits. */
  id: string
  /** What the caller was told; a caller who sends the same `X-Request-Id` twice has it twice. */
  request_id: string
  parent_key_id: string
  /** Empty for a call that no agent made. */
  agent_id: string
  /** The backend's own id. */
  model: string
  provider: string
  /** `ok`, `left` (by the caller, before the end), or the reason it failed for. */
  status: string
  prompt_tokens: number
  completion_tokens: number
  /** The backend did not say what was used. */
  is_estimated: number
  is_streamed: number
  latency_ms: number
  /** Null when nothing was streamed. */
  first_byte_ms: number | null
  /** When the call began. */
  created_at: number
}

/** The calls that began on one day (UTC), summed up; kept for good. */
export interface UsageDayTable {
  parent_key_id: string
  /** YYYY-MM-DD. */
  day: string
  /** Empty for calls that no agent made. */
  agent_id: string
  model: string
  provider: string
  requests: number
  errors: number
  prompt_tokens: number
  completion_tokens: number
  /** How many of the requests had their tokens estimated. */
  estimated: number
  /** JSON: calls by bucket, as `src/usage/histogram.ts` cuts them. */
  latency_histogram: string
  first_byte_histogram: string
}

/** Whose tokens a budget bounds: a parent key's, all its agents included, or one agent's. */
interface BudgetKey {
  owner_kind: 'parent' | 'agent'
  owner_id: string
  /** In UTC. */
  period: 'day' | 'month'
}

/** A bound on tokens. */
export interface BudgetTable extends BudgetKey {
  token_limit: number
}

/** What a budget's owner has used in one period. */
export interface BudgetCounterTable extends BudgetKey {
  /** The period's first day, YYYY-MM-DD. */
  starts_on: string
  used: number
  /** The sum of the reservations that are open. */
  reserved: number
}

/** Tokens held back for a call under way; one row for each budget that bounds it. */
export interface BudgetReservationTable extends BudgetKey {
  /** The call's. */
  id: string
  starts_on: string
  tokens: number
  /** A call that has not ended by then never will: its process is gone. */
  expires_at: number
}

/** An uploaded file; its bytes lie in the blob store. */
export interface FileTable {
  id: string
  /** The tenant. */
  parent_key_id: string
  /** The blob's name in the store: a UUID. */
  blob: string
  size_bytes: number
  /** As it was sent, less the folders before it. */
  filename: string
  purpose: string
  /** What the bytes were found to be when they came in. */
  media_type: string
  /** Orders files by creation, also within a second; microseconds since the epoch, made unique. */
  position: number
  created_at: number
  /** From this second on it is gone; null when it stays. */
  expires_at: number | null
}

/** Something that was done, and who did it; kept for good, whatever becomes of the target. */
export interface AuditEventTable {
  /** Made here, and it grows with time: microseconds since the epoch in base 36 come first. */
  id: string
  created_at: number
  actor_kind: 'parent_key' | 'user' | 'command' | 'service'
  /** The key's public id, the user's email, or the operating system's user a command ran as. */
  actor: string
  /** One of `auditActions` in `src/audit/audit.ts`. */
  action: string
  target_kind: 'key' | 'agent' | 'file'
  target_id: string
  /** The parent key the target is, or belongs to; null when there is none. */
  tenant: string | null
  /** What the caller was told; null outside a call. */
  request_id: string | null
  client_address: string | null
  /** JSON: what changed; never a secret. */
  details: string
}

/** What tells this installation from others, wherever its database is moved to. */
export interface InstallationTable {
  /** Always 1: there is one row, and none until somebody asks. */
  only: number
  /** A UUID. */
  id: string
  created_at: number
}

/** Every table by its name. */
export interface Tables {
  parent_keys: ParentKeyTable
  credentials: CredentialTable
  agents: AgentTable
  agent_versions: AgentVersionTable
  usage_calls: UsageCallTable
  usage_days: UsageDayTable
  budgets: BudgetTable
  budget_counters: BudgetCounterTable
  budget_reservations: BudgetReservationTable
  files: FileTable
  users: UserTable
  audit_events: AuditEventTable
  installation: InstallationTable
}
