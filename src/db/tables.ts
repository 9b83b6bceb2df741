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

/** A secret that was handed out once, and what it is good for until when. */
export interface SecretTable {
  /** SHA-256 of its text. */
  digest: string
  expires_at: number
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

/** An artifact: a reserved id, an upload under way, or what became of one; its bytes lie in the blob store. */
export interface ArtifactTable {
  /** A UUID in lower case, made by the client or by us; one for all tenants. */
  id: string
  /** The tenant. */
  parent_key_id: string
  /** The last part of the upload's address, which nobody can guess; null while the id is only reserved. */
  segment: string | null
  /** `unknown` is a reserved id. */
  state: 'unknown' | 'uploading' | 'processing' | 'ready'
  /** Null only for a reserved id that may become any kind. */
  kind: 'video' | 'project' | 'captions' | 'thumbnail' | null
  /** The id of the artifact it belongs to, which need not be there. */
  related_to: string | null
  /** Its display name. */
  name: string | null
  /** As the client sent it; null while the id is only reserved. */
  filename: string | null
  /** The media type as the client sent it; never believed. */
  filetype: string | null
  /** SHA-256 of the whole, in hexadecimal, as the client announced it. */
  checksum: string | null
  /** `Upload-Metadata` as it was sent. */
  metadata: string | null
  /** The declared length; null while it is not known. */
  size_bytes: number | null
  /** Bytes that survive a crash: what a client may go on from. */
  received_bytes: Generated<number>
  /** Bytes that count against the tenant's quota. */
  kept_bytes: Generated<number>
  /** The name of the bytes as they were sent: first where blobs grow, then in the store. A UUID; null for a reserved id. */
  blob: string | null
  /** Counts the leases: whoever writes bytes names the number of theirs, and a newer one shuts them out. */
  fence: Generated<number>
  /** Somebody may be writing bytes until this second; null while nobody is. */
  lease_until: number | null
  /** The blob that is served; null until `ready`. May be the one that was sent. */
  served_blob: string | null
  served_bytes: number | null
  /** What the served bytes are meant to be; null until `ready`. */
  media_type: string | null
  /** What the served bytes were found to be; null until `ready`. */
  sniffed_type: string | null
  /** A still picture (JPEG); null where there is none. */
  poster_blob: string | null
  poster_bytes: number | null
  /** Of the conversion, 0 to 1000. */
  progress_permille: Generated<number>
  /** Null until `ready`. */
  conversion_result: 'converted' | 'original' | null
  /** Why the bytes are served as they were sent; null where there is nothing to say. */
  conversion_reason: string | null
  /** The host has handled the complete upload. */
  acknowledged: Generated<number>
  /** JSON: what the host recorded; null until it does. */
  outcome: string | null
  created_at: number
  /** When the last byte was recorded; null until then. */
  finished_at: number | null
  /** From this second on an unfinished upload or a reserved id is gone; null for one that stays. */
  expires_at: number | null
}

/** What is still to be done with a complete upload; gone when it is done, and with the artifact. */
export interface JobTable {
  /** `convert` makes it ready, `hook` tells the host of it. */
  kind: 'convert' | 'hook'
  /** The upload, by the bytes as they were sent. To a host it is the id of the event. */
  blob: string
  /** Counts how often it was taken: whoever has it names the number of theirs, and a newer one shuts them out. */
  fence: Generated<number>
  /** Somebody is at it, until `next_at` unless they renew that. */
  is_taken: Generated<number>
  /** How often the content was refused. */
  refusals: Generated<number>
  /** How often it failed for another reason, the end of a process included. */
  failures: Generated<number>
  /** From this second on it may be taken. */
  next_at: number
}

/** Something that was done, and who did it; kept for good, whatever becomes of the target. */
export interface AuditEventTable {
  /** Made here, and it grows with time: microseconds since the epoch in base 36 come first. */
  id: string
  created_at: number
  actor_kind: 'parent_key' | 'user' | 'token' | 'command' | 'service'
  /** The key's public id, the user's email, the artifact a token is for, or the operating system's user a command ran as. */
  actor: string
  /** One of `auditActions` in `src/audit/audit.ts`. */
  action: string
  target_kind: 'key' | 'agent' | 'file' | 'artifact' | 'user'
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
  /** The name of the key that follows from the secret its servers share; null where there is one server. */
  secret_key_id: Generated<string | null>
}

/** The requests that counted against one limit in a minute. Used on PostgreSQL alone, as the next two. */
export interface RateWindowTable {
  key: string
  count: number
  ends_at_ms: number
}

/** The streams that are open for one owner. */
export interface StreamSlotTable {
  key: string
  /** JSON: how many each replica has, by its id. */
  open: string
}

/** A replica, and when it was seen last. */
export interface ReplicaTable {
  id: string
  seen_at_ms: number
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
  artifacts: ArtifactTable
  jobs: JobTable
  users: UserTable
  /** Each signs the local administrator in, once. */
  sign_in_links: SecretTable
  /** Each is the local administrator at a browser. */
  sessions: SecretTable
  audit_events: AuditEventTable
  installation: InstallationTable
  rate_windows: RateWindowTable
  stream_slots: StreamSlotTable
  replicas: ReplicaTable
}

/** The module that alone reads and writes each table; `scripts/check-structure.ts` enforces it. */
export const tableOwners = {
  parent_keys: 'identity',
  credentials: 'identity',
  users: 'identity',
  sign_in_links: 'identity',
  sessions: 'identity',
  audit_events: 'identity',
  agents: 'agents',
  agent_versions: 'agents',
  usage_calls: 'usage',
  usage_days: 'usage',
  budgets: 'usage',
  budget_counters: 'usage',
  budget_reservations: 'usage',
  files: 'files',
  artifacts: 'artifacts',
  jobs: 'artifacts',
  installation: 'db',
  rate_windows: 'replicas',
  stream_slots: 'replicas',
  replicas: 'replicas',
} as const satisfies Record<keyof Tables, string>
