/** The schemas of usage queries and results. */
import { z } from 'zod'

const error = 'must be a date (YYYY-MM-DD, in UTC) or Unix seconds'
/** The end of the year 9999. */
const LAST_SECOND = 253_402_300_799

export const Moment = z.union(
  [z.int({ error }).min(0, { error }).max(LAST_SECOND, { error }), z.iso.date({ error })],
  { error },
)

export const UsageQuery = z.strictObject({
  from: Moment.optional().meta({
    description: 'The first day, as a date or as a second in it (UTC); 29 days before `to` unless given.',
  }),
  to: Moment.optional().meta({
    description: 'The last day, included, as a date or as a second in it (UTC); today unless given.',
  }),
  group_by: z
    .enum(['day', 'agent', 'model'], { error: 'must be day, agent or model' })
    .default('day')
    .meta({ description: 'What each entry of the list sums up.' }),
})
export type UsageQuery = z.infer<typeof UsageQuery>

const milliseconds = z.int().nonnegative()

const Percentiles = z
  .strictObject({ p50: milliseconds, p95: milliseconds, p99: milliseconds })
  .nullable()
  .meta({ id: 'Percentiles', description: 'In milliseconds, within 5 %; null when nothing was measured.' })

const sums = {
  requests: z.int(),
  errors: z.int().meta({ description: 'Calls that failed; a caller who leaves is none.' }),
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  total_tokens: z.int(),
  estimated_requests: z.int().meta({ description: 'Calls whose tokens the backend did not tell.' }),
  latency_ms: Percentiles,
  first_byte_ms: Percentiles.meta({ description: 'Of streamed answers.' }),
}

export const AgentLastDays = z
  .array(z.strictObject({ agent: z.string(), day: z.iso.date() }))
  .meta({ description: 'Agents that were never called are left out.' })

export const UsageSums = z.strictObject(sums).meta({ id: 'UsageSums' })
export type UsageSums = z.infer<typeof UsageSums>

export const UsageEntry = z
  .strictObject({
    day: z.iso
      .date()
      .optional()
      .meta({ description: 'With `group_by=day`; days without calls are left out.' }),
    agent: z
      .string()
      .nullable()
      .optional()
      .meta({ description: 'With `group_by=agent`: its id, or null for calls without an agent.' }),
    model: z.string().optional().meta({ description: "With `group_by=model`: the backend's own id." }),
    provider: z.string().optional().meta({ description: 'With `group_by=model`.' }),
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
  })
  .meta({ id: 'UsageList' })
export type UsageList = z.infer<typeof UsageList>
