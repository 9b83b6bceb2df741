/** Defines the database tables. Booleans are 0 or 1, times are Unix seconds, and JSON is stored as text. */
import type { Generated } from 'kysely'
import type { ArtifactEndingTable, ArtifactTable, JobTable } from './tables/artifacts.ts'
import type {
  BudgetCounterTable,
  BudgetEntryTable,
  BudgetEventTable,
  BudgetReservationTable,
  BudgetTable,
} from './tables/budgets.ts'
import type { PriceSnapshotTable, UsageCallTable, UsageDayTable } from './tables/usage.ts'

export type { ArtifactEndingTable, ArtifactTable, JobTable } from './tables/artifacts.ts'
export type {
  BudgetCounterTable,
  BudgetEntryTable,
  BudgetEventTable,
  BudgetReservationTable,
  BudgetTable,
} from './tables/budgets.ts'
export type { UsageCallTable, UsageDayTable } from './tables/usage.ts'

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
  /**
   * The key's own limits; null if not set. For each limit, the server applies the lower of this value and the
   * corresponding setting.
   */
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
  /** Time of the user's last request, in Unix seconds; up to a minute out of date. */
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
  /** The note of the current version. */
  note: string | null
}

export interface AgentVersionTable
  extends Pick<AgentTable, 'version' | 'name' | 'source' | 'format' | 'created_at' | 'note'> {
  agent_id: string
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

/** An audited action; never deleted, even if its target is. */
export interface AuditEventTable {
  /** Sortable: starts with microseconds since the epoch in base 36. */
  id: string
  created_at: number
  actor_kind: 'parent_key' | 'user' | 'token' | 'command' | 'service'
  /**
   * The key's public id, the user's email, the token's artifact or visitor, or the system user who ran a
   * command.
   */
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
    | 'budget'
    | 'price'
    | 'model'
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
  /** The last characters of the API key; null without a key, or if it is too short to reveal part of it. */
  key_hint: string | null
  /** Random; replaced at each change, so that servers notice the change. */
  revision: string
  created_at: number
  updated_at: number
}

/** Prices that administrators set for the models of providers. */
/** Models whose answers budgets measure in bytes. */
export interface ModelMeterTable {
  provider: string
  model: string
  metering: 'bytes'
  /** The bound that the provider violated. */
  reason: string
  /** Unix seconds. */
  until: number
}

export interface PriceOverrideTable {
  provider: string
  model: string
  /** JSON: the list of dated entries, as defined in `src/prices/schema.ts`. */
  entry: string
  /** The name of the actor, as in the audit log. */
  updated_by: string
  updated_at: number
}

export interface VisitorSecretTable {
  agent_id: string
  /** The secret that signs visitors' identities, encrypted with the installation's master key. */
  secret_sealed: string
  /** The secret before the last rotation, which stays valid until `previous_until`. */
  previous_sealed: string | null
  previous_until: number | null
  created_at: number
}

export interface WebhookTable {
  id: string
  tenant: string
  /** Null for the events of all agents. */
  agent_id: string | null
  url: string
  /** JSON: a list of event types. */
  events: string
  include_text: number
  /** The signing secret, encrypted with the installation's master key. */
  secret_sealed: string
  /** The secret before the last rotation, which also signs until `previous_until`. */
  previous_sealed: string | null
  previous_until: number | null
  state: 'enabled' | 'disabled'
  /** Null while the webhook is enabled. */
  disabled_reason: 'owner' | 'gone' | 'failing' | null
  /** When the attempts began to fail; null after a success. */
  failing_since: number | null
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
  price_snapshots: PriceSnapshotTable
  budgets: BudgetTable
  budget_counters: BudgetCounterTable
  budget_reservations: BudgetReservationTable
  budget_entries: BudgetEntryTable
  budget_events: BudgetEventTable
  model_meters: ModelMeterTable
  files: FileTable
  artifacts: ArtifactTable
  artifact_endings: ArtifactEndingTable
  jobs: JobTable
  users: UserTable
  sign_in_links: SecretTable
  sessions: SecretTable
  audit_events: AuditEventTable
  providers: ProviderTable
  price_overrides: PriceOverrideTable
  webhooks: WebhookTable
  visitor_secrets: VisitorSecretTable
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
  price_snapshots: 'usage',
  budgets: 'budgets',
  budget_counters: 'budgets',
  budget_reservations: 'budgets',
  budget_entries: 'budgets',
  budget_events: 'budgets',
  model_meters: 'budgets',
  files: 'files',
  providers: 'models',
  price_overrides: 'models',
  webhooks: 'webhooks',
  visitor_secrets: 'visitors',
  artifacts: 'artifacts',
  artifact_endings: 'artifacts',
  jobs: 'artifacts',
  installation: 'db',
  rate_windows: 'replicas',
  stream_slots: 'replicas',
  replicas: 'replicas',
} as const satisfies Record<keyof Tables, string>
