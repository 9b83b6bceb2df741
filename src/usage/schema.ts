/** Defines the schemas of usage queries and results. */
import { z } from 'zod'
import { label, modelId, reference } from '../lib/schema-bounds.ts'
import { Amount } from '../prices/money.ts'

const error = 'must be a date (YYYY-MM-DD, in UTC) or Unix seconds'
/** The end of the year 9999. */
const LAST_SECOND = 253_402_300_799

export const Moment = z.union(
  [z.int({ error }).min(0, { error }).max(LAST_SECOND, { error }), z.iso.date({ error })],
  { error },
)

export const UsageQuery = z.strictObject({
  from: Moment.optional().meta({
    description:
      'First day (UTC), as a date or as Unix seconds on that day. Defaults to 29 days before `to`.',
  }),
  to: Moment.optional().meta({
    description: 'Last day (UTC, inclusive), as a date or as Unix seconds on that day. Defaults to today.',
  }),
  group_by: z
    .enum(['day', 'agent', 'model', 'key'], { error: 'must be day, agent, model or key' })
    .default('day')
    .meta({ description: 'Grouping of the entries.' }),
  agent: reference().optional().meta({
    description: "Counts only this agent's calls. An empty value selects calls without an agent.",
  }),
  model: modelId()
    .optional()
    .meta({ description: "The provider's model id; counts only calls to this model." }),
  status: label().min(1).optional().meta({
    description:
      'Counts only calls with this outcome: `ok`, `left` (the client disconnected) or the reason for a failure. The sums then include only calls that the server has not deleted after `PARLEY_USAGE_RETENTION_DAYS`.',
  }),
})
export type UsageQuery = z.infer<typeof UsageQuery>

export const UsageCallQuery = z.strictObject({
  limit: z.int().min(1).max(100).default(50).meta({ description: 'Maximum number of calls to return.' }),
  after: label().optional().meta({ description: '`next_after` of the previous page.' }),
  key: label().optional().meta({
    description: 'Public id of a parent key. A parent key can only list its own calls.',
  }),
  agent: reference()
    .optional()
    .meta({ description: 'Agent id. An empty value selects calls without an agent.' }),
  model: modelId().optional().meta({ description: "The provider's model id." }),
  status: label().min(1).optional().meta({
    description: '`ok`, `left` (the client disconnected) or the reason for a failure.',
  }),
  min_cost: Amount.optional().meta({
    description: 'Lists only calls that cost at least this amount, in US dollars.',
  }),
  request_id: label().min(1).optional().meta({
    description:
      'Lists only the calls of this request: the `X-Request-Id` of a response or the id in an error.',
  }),
  from: Moment.optional().meta({ description: 'First day (UTC), as a date, or first second (Unix).' }),
  to: Moment.optional().meta({
    description: 'Last day (UTC, inclusive), as a date, or last second (Unix, inclusive).',
  }),
})
export type UsageCallQuery = z.infer<typeof UsageCallQuery>

export const UsageExportQuery = UsageCallQuery.omit({ limit: true, after: true })
export type UsageExportQuery = z.infer<typeof UsageExportQuery>

const milliseconds = z.int().nonnegative()

const Percentiles = z
  .strictObject({ p50: milliseconds, p95: milliseconds, p99: milliseconds })
  .nullable()
  .meta({
    id: 'Percentiles',
    description: 'Percentiles in milliseconds, accurate to 5%; null if there are no measurements.',
  })

const sums = {
  requests: z.int(),
  errors: z
    .int()
    .meta({ description: 'Number of failed calls; a client disconnect does not count as a failure.' }),
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  total_tokens: z.int(),
  estimated_requests: z.int().meta({
    description:
      'Number of calls whose tokens the server estimated, because the provider reported none or implausible ones.',
  }),
  cost: z.string().meta({
    description:
      'Cost in US dollars, such as `"12.5"`, of the calls that have a price. Calls recorded by earlier versions of Parley have no cost.',
  }),
  unpriced_requests: z
    .int()
    .meta({ description: 'Number of calls that used tokens from a model without a price.' }),
  cached_tokens: z.int().meta({ description: 'Prompt tokens that the provider read from a cache.' }),
  cache_write_tokens: z.int().meta({ description: 'Prompt tokens that the provider wrote to a cache.' }),
  reasoning_tokens: z.int().meta({ description: 'Completion tokens that the model used to reason.' }),
  latency_ms: Percentiles,
  first_byte_ms: Percentiles.meta({ description: 'Time to the first byte of streamed responses.' }),
}

/** Maximum number of failures that a call records. */
export const MAX_FAILED_ATTEMPTS = 20

export const FailedAttempt = z.strictObject({
  provider: z.string(),
  model: z.string(),
  reason: z.string().meta({
    description:
      '`timeout`, `unreachable`, another kind of failure, or the status that the provider returned, such as `status_429` or `status_5xx`.',
  }),
})
export type FailedAttempt = z.infer<typeof FailedAttempt>

export const UsageCall = z
  .strictObject({
    id: z.string(),
    request_id: z.string().meta({ description: 'The request id of the response.' }),
    key: z.string().meta({ description: 'Public id of the parent key.' }),
    agent: z.string().nullable().meta({ description: 'Agent id, or null for calls without an agent.' }),
    model: z.string().meta({ description: "The provider's model id." }),
    provider: z.string(),
    status: z.string().meta({
      description: '`ok`, `left` (the client disconnected) or the reason for a failure.',
    }),
    prompt_tokens: z.int(),
    completion_tokens: z.int(),
    total_tokens: z.int(),
    estimated: z.boolean().meta({
      description: 'True if the tokens are estimated; the provider reported none or implausible ones.',
    }),
    streamed: z.boolean(),
    latency_ms: milliseconds,
    first_byte_ms: milliseconds.nullable().meta({
      description:
        'Time to the first byte of a streamed answer; null if the answer was not streamed or had no first byte.',
    }),
    created_at: z.int().meta({ description: 'Unix seconds at which the call began.' }),
    attempts: z.int().nullable().meta({
      description:
        'Number of requests to providers, including retries, fallbacks and requests after tool calls; null for calls recorded by earlier versions of Parley.',
    }),
    cost: z.string().nullable().meta({
      description:
        'Cost in US dollars, such as `"0.0007345"`; null for a call without a price, or recorded by an earlier version of Parley.',
    }),
    price_id: z.string().nullable().meta({
      description: 'Identifies the price of the last request to a provider; null without a price.',
    }),
    rounds: z.int().nullable().meta({
      description: 'Number of model answers; null for calls recorded by earlier versions of Parley.',
    }),
    cached_tokens: z.int(),
    cache_write_tokens: z.int(),
    reasoning_tokens: z.int(),
    audio_tokens: z.int(),
    image_tokens: z.int(),
    failed_attempts: z.array(FailedAttempt).meta({
      description: `Requests to providers that failed, in order (at most ${MAX_FAILED_ATTEMPTS}). After a model's last failure, its fallback is called.`,
    }),
  })
  .meta({ id: 'UsageCall' })
export type UsageCall = z.infer<typeof UsageCall>

export const UsageCallList = z
  .strictObject({
    object: z.literal('list'),
    data: z.array(UsageCall),
    has_more: z.boolean().meta({
      description: 'True if there may be older calls. A page may contain fewer calls than `limit`.',
    }),
    next_after: z
      .string()
      .nullable()
      .meta({ description: '`after` of the next page; null on the last page.' }),
  })
  .meta({ id: 'UsageCallList' })
export type UsageCallList = z.infer<typeof UsageCallList>

export const UsageSums = z.strictObject(sums).meta({ id: 'UsageSums' })
export type UsageSums = z.infer<typeof UsageSums>

export const UsageEntry = z
  .strictObject({
    day: z.iso
      .date()
      .optional()
      .meta({ description: 'Present with `group_by=day`; days without calls are omitted.' }),
    agent: z
      .string()
      .nullable()
      .optional()
      .meta({ description: 'Agent id, or null for calls without an agent; present with `group_by=agent`.' }),
    model: z
      .string()
      .optional()
      .meta({ description: "The provider's model id; present with `group_by=model`." }),
    provider: z.string().optional().meta({ description: 'Provider name; present with `group_by=model`.' }),
    key: z.string().optional().meta({
      description: 'Public id of the parent key; present with `group_by=key`.',
    }),
    ...sums,
  })
  .meta({ id: 'UsageEntry' })
export type UsageEntry = z.infer<typeof UsageEntry>

export const UsageList = z
  .strictObject({
    object: z.literal('list'),
    from: z.iso.date(),
    to: z.iso.date(),
    data: z.array(UsageEntry),
    total: UsageSums,
    kept_days: z.int().optional().meta({
      description:
        'Number of days after which the server deletes calls. Present only if the request filters by `status`.',
    }),
  })
  .meta({ id: 'UsageList' })
export type UsageList = z.infer<typeof UsageList>
