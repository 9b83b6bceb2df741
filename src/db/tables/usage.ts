/** Defines the tables of the usage module: calls, totals per day, and the prices of calls. */
import type { Generated } from 'kysely'

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
  /** Nano-dollars; null for a call without a price, or recorded before this column existed. */
  cost: Generated<number | null>
  /** The price of the last request to a provider: an id of `price_snapshots`. */
  price_id: Generated<string | null>
  /** Number of model answers; null for calls recorded before this column existed. */
  rounds: Generated<number | null>
  cached_tokens: Generated<number>
  cache_write_tokens: Generated<number>
  reasoning_tokens: Generated<number>
  audio_tokens: Generated<number>
  image_tokens: Generated<number>
}

/** The prices used to compute costs. */
export interface PriceSnapshotTable {
  /** SHA-256 of the entry. */
  id: string
  /** JSON, as defined in `src/prices/schema.ts`. */
  entry: string
  first_used_at: number
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
  /** Nano-dollars. */
  cost: Generated<number>
  /** Number of calls that used tokens without a price. */
  unpriced: Generated<number>
  cached_tokens: Generated<number>
  cache_write_tokens: Generated<number>
  reasoning_tokens: Generated<number>
  /** JSON: the number of calls in each bucket that `src/usage/histogram.ts` defines. */
  latency_histogram: string
  first_byte_histogram: string
}
