/**
 * Defines the tables of both databases. Booleans are 0 or 1, times are Unix seconds, and JSON is stored as
 * text.
 */
import type { Generated } from 'kysely'
import type { WebhookTable } from './conversations/webhook-tables.ts'

export type { WebhookTable } from './conversations/webhook-tables.ts'

export interface ParentKeyTable {
  /** The key's public part, 12 base62 characters. It identifies the tenant. */
  id: string
  name: string
  hint: string
  created_at: number
  rotated_at: number | null
  revoked_at: number | null
  /** Up to a minute out of date; null if the key was never used. */
  last_used_at: number | null
  /** Null for an unclaimed key. */
  user_id: string | null
  /**
   * True for a key that was created automatically for its user; it is revoked when the user claims another
   * key.
   */
  is_automatic: Generated<number>
  /**
   * Set while the key, its agent keys and its tokens are rejected; unlike a revocation, this can be undone.
   */
  disabled_at: number | null
  /**
   * Unix seconds from which the key, its agent keys and its tokens are rejected; null if it does not expire.
   */
  expires_at: number | null
  /** The key's own limits; null for none. The server applies the lower of each and the matching setting. */
  requests_per_minute: number | null
  max_streams: number | null
  /** True for a key that may create other keys and manage those that it created. */
  can_manage_keys: Generated<number>
  /** The key that created this one through the API; null for any other key. */
  managed_by: string | null
}

export interface UserTable {
  id: string
  /** The user's email address, in lower case and NFC. */
  email: string
  name: string
  username: string | null
  groups: string
  /** The user's current tenant; null while both are being created. */
  active_key_id: string | null
  created_at: number
  /** Unix seconds of the user's last request; up to a minute out of date. */
  last_seen_at: number
}

/** A sign-in link or session, identified by the digest of its secret. */
export interface SecretTable {
  digest: string
  expires_at: number
}

/** A valid credential. A rotated key has two rows while both secrets are valid. */
export interface CredentialTable {
  digest: string
  kind: 'parent' | 'agent'
  parent_key_id: string
  agent_id: string | null
  /** Unix seconds from which the secret is rejected; null for the current secret. */
  valid_until: number | null
  created_at: number
  /** Set while the agent is in the bin; the secret is rejected during this time. */
  suspended_at: number | null
}

export interface AgentTable {
  id: string
  parent_key_id: string
  version: number
  name: string
  source: string
  format: 'yaml' | 'markdown'
  key_id: string
  /** The encrypted agent key. The API returns it in plain text. */
  key_sealed: string
  key_hint: string
  /** Microseconds since the epoch; orders agents by creation. */
  position: number
  created_at: number
  updated_at: number
  /** JSON as defined in `src/models/policy.ts`; null without a policy. */
  model_policy: string | null
  model_policy_updated_at: number | null
  /** Unix seconds at which the agent was moved to the bin; null for any other agent. */
  binned_at: number | null
}

export interface AgentVersionTable
  extends Pick<AgentTable, 'version' | 'name' | 'source' | 'format' | 'created_at'> {
  agent_id: string
}

export interface UsageCallTable {
  /** Sortable: starts with the Unix time in milliseconds at which the call began, as 15 digits. */
  id: string
  /** The request id of the response. It is not unique, because clients may send their own. */
  request_id: string
  parent_key_id: string
  agent_id: string
  model: string
  provider: string
  /** `ok`, `left` (the client disconnected), or the reason for the failure. */
  status: string
  prompt_tokens: number
  completion_tokens: number
  is_estimated: number
  is_streamed: number
  latency_ms: number
  first_byte_ms: number | null
  created_at: number
  /** Number of requests to providers; null for calls recorded before this column existed. */
  attempts: number | null
  /** JSON: the provider, model and failure of each failed request; null if none failed. */
  failed_attempts: string | null
}

/** Totals of the calls that began on one day (UTC); never deleted. */
export interface UsageDayTable {
  parent_key_id: string
  day: string
  agent_id: string
  model: string
  provider: string
  requests: number
  errors: number
  prompt_tokens: number
  completion_tokens: number
  estimated: number
  /** JSON: the number of calls in each bucket that `src/usage/histogram.ts` defines. */
  latency_histogram: string
  first_byte_histogram: string
}

/** The owner of a budget: a parent key with all its agents, or one agent. */
interface BudgetKey {
  owner_kind: 'parent' | 'agent'
  owner_id: string
  period: 'day' | 'month'
}

export interface BudgetTable extends BudgetKey {
  token_limit: number
}

interface BudgetCounterTable extends BudgetKey {
  starts_on: string
  used: number
  reserved: number
}

/** Tokens reserved for a running call; one row for each budget of the call. */
export interface BudgetReservationTable extends BudgetKey {
  id: string
  starts_on: string
  tokens: number
  /** Unix seconds after which the reservation is void, because its process must have stopped. */
  expires_at: number
}

export interface FileTable {
  id: string
  parent_key_id: string
  blob: string
  size_bytes: number
  filename: string
  purpose: string
  media_type: string
  position: number
  created_at: number
  expires_at: number | null
}

/**
 * An artifact in any state: a reserved id, an active upload or its result. Its bytes are in the blob store.
 */
export interface ArtifactTable {
  /** A lowercase UUID from the client or the server, unique across all tenants. */
  id: string
  parent_key_id: string
  /** The random last segment of the upload's URL; null for a reserved id. */
  segment: string | null
  state: 'unknown' | 'uploading' | 'processing' | 'ready'
  kind: 'video' | 'project' | 'captions' | 'thumbnail' | null
  /** Id of the artifact that this one belongs to; it may not exist. */
  related_to: string | null
  name: string | null
  filename: string | null
  /** The media type that the client sent; it may be wrong. */
  filetype: string | null
  /** SHA-256 of the whole upload in hexadecimal, as sent by the client. */
  checksum: string | null
  /** SHA-256 of the whole upload in hexadecimal, once the server has verified or computed it. */
  sha256: string | null
  metadata: string | null
  size_bytes: number | null
  /** Number of durable bytes, from which a client may resume. */
  received_bytes: Generated<number>
  /** Number of bytes that the lease holder has received, durable or not; meaningless without a lease. */
  arrived_bytes: Generated<number>
  /** Number of bytes charged to the tenant's quota. */
  kept_bytes: Generated<number>
  /**
   * UUID of the blob with the uploaded bytes, which is in the resumable store until the upload is complete;
   * null for a reserved id.
   */
  blob: string | null
  /** Increases with each lease. A write fails if it was made under an earlier lease. */
  fence: Generated<number>
  lease_until: number | null
  /** The served blob, which may be the original; null until `ready`. */
  served_blob: string | null
  served_bytes: number | null
  /**
   * The served bytes' expected media type; `sniffed_type` is the detected one. Both are null until `ready`.
   */
  media_type: string | null
  sniffed_type: string | null
  poster_blob: string | null
  poster_bytes: number | null
  progress_permille: Generated<number>
  conversion_result: 'converted' | 'original' | null
  conversion_reason: string | null
  acknowledged: Generated<number>
  outcome: string | null
  created_at: number
  finished_at: number | null
  /** Unix seconds at which an unfinished upload or a reserved id expires; null for a complete upload. */
  expires_at: number | null
  /** Unix seconds at which a ready artifact was moved to the bin; null for all others. */
  binned_at: number | null
}

/**
 * The reason why an artifact became `unknown`; deleted when no token for the artifact can be valid any
 * longer.
 */
export interface ArtifactEndingTable {
  /** The artifact's id, which a new upload may use again. */
  id: string
  parent_key_id: string
  related_to: string | null
  reason: 'expired' | 'checksum_mismatch' | 'dangerous' | 'deleted'
  ended_at: number
}

/** A pending task for a complete upload; deleted when the task is done or a client deletes the artifact. */
export interface JobTable {
  /** `convert` makes the artifact ready; `hook` and `converted` call the host's handlers. */
  kind: 'convert' | 'hook' | 'converted'
  /** The upload's `blob`, which is also the event id of `hook`. */
  blob: string
  /** JSON: the event of `converted`, whose artifact may have been rejected. */
  event: string | null
  fence: Generated<number>
  /** True while a runner holds the lease, which expires at `next_at`. */
  is_taken: Generated<number>
  refusals: Generated<number>
  /** Number of failures that the content did not cause, such as crashes. */
  failures: Generated<number>
  next_at: number
}

/** An audited action; never deleted, even if its target is. */
export interface AuditEventTable {
  /** Sortable: starts with microseconds since the epoch in base 36. */
  id: string
  created_at: number
  actor_kind: 'parent_key' | 'user' | 'token' | 'command' | 'service'
  /** The key's public id, the user's email, the token's artifact, or the system user who ran a command. */
  actor: string
  /** One of `auditActions` in `src/identity/audit.ts`. */
  action: string
  target_kind:
    | 'key'
    | 'agent'
    | 'file'
    | 'artifact'
    | 'conversation'
    | 'user'
    | 'provider'
    | 'webhook'
    | 'visitor'
  target_id: string
  tenant: string | null
  /** The request id of the response; null for a command. */
  request_id: string | null
  client_address: string | null
  details: string
}

/** A model provider that an administrator added; providers in the configuration are not stored. */
export interface ProviderTable {
  name: string
  kind: 'gateway' | 'local'
  base_url: string
  /** The provider's encrypted API key; null without one. */
  key_sealed: string | null
  /** The last characters of the API key; null without a key, or if it is too short to show a part of it. */
  key_hint: string | null
  /** Random; a new value after each change, so that servers notice the change. */
  revision: string
  created_at: number
  updated_at: number
}

interface InstallationTable {
  /** Always 1, because there is at most one row. */
  only: number
  id: string
  created_at: number
  /** The id of the key derived from the shared secret; null with a single server. */
  secret_key_id: Generated<string | null>
}

/**
 * Number of requests per rate limit and minute. This table and the next two are used only with PostgreSQL.
 */
interface RateWindowTable {
  key: string
  count: number
  ends_at_ms: number
}

interface StreamSlotTable {
  key: string
  /** JSON: the number of open streams per replica id. */
  open: string
}

interface ReplicaTable {
  id: string
  seen_at_ms: number
}

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
  artifact_endings: ArtifactEndingTable
  jobs: JobTable
  users: UserTable
  sign_in_links: SecretTable
  sessions: SecretTable
  audit_events: AuditEventTable
  providers: ProviderTable
  webhooks: WebhookTable
  installation: InstallationTable
  rate_windows: RateWindowTable
  stream_slots: StreamSlotTable
  replicas: ReplicaTable
}

/**
 * Maps each table to the only module that may read and write it; `scripts/check-structure.ts` enforces this.
 */
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
  providers: 'models',
  webhooks: 'webhooks',
  artifacts: 'artifacts',
  artifact_endings: 'artifacts',
  jobs: 'artifacts',
  installation: 'db',
  rate_windows: 'replicas',
  stream_slots: 'replicas',
  replicas: 'replicas',
} as const satisfies Record<keyof Tables, string>
