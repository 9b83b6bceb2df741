/** Defines the tables of webhooks and visitor secrets, which are in the main database. Times are Unix seconds. */

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

export interface VisitorSecretTable {
  agent_id: string
  /** The secret that signs the identity of visitors, encrypted with the installation's master key. */
  secret_sealed: string
  /** The secret before the last rotation, which is also valid until `previous_until`. */
  previous_sealed: string | null
  previous_until: number | null
  created_at: number
}
