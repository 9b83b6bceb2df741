/** Defines the tables of the usage module: calls and totals per day. */

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
