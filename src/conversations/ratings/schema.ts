/** Defines the schemas of ratings. */
import { z } from 'zod'
import { reference, storable } from '../../lib/schema-bounds.ts'

const MAX_COMMENT = 1_000
const MAX_DAYS = 366

export const ratingReasons = ['incorrect', 'incomplete', 'off_topic', 'unsafe', 'too_slow', 'other'] as const

export const ratingFields = {
  value: z.enum(['up', 'down'], { error: 'must be up or down' }),
  reason: z
    .enum(ratingReasons, { error: `must be one of ${ratingReasons.join(', ')}` })
    .nullish()
    .meta({ description: 'Why the answer is good or bad.' }),
  comment: storable(z.string().max(MAX_COMMENT, `must be at most ${MAX_COMMENT} characters`))
    .nullish()
    .meta({ description: 'Comment for the owner of the agent.' }),
}

const NewRating = z.strictObject(ratingFields)
export type NewRating = z.infer<typeof NewRating>

export const RatingReference = z.object({
  turn_id: reference().meta({ description: 'Turn id (`turn_…`), or the id of its response (`resp_…`).' }),
})

export const RatingInput = RatingReference.extend(ratingFields)

export const Rating = z
  .strictObject({
    object: z.literal('rating'),
    source: z
      .enum(['visitor', 'owner', 'api'])
      .meta({ description: 'A visitor, a console user (`owner`), or a client with a parent key (`api`).' }),
    value: z.enum(['up', 'down']),
    reason: z.enum(ratingReasons).nullable(),
    comment: z.string().nullable(),
    created_at: z.int().meta({ description: 'Unix seconds.' }),
    updated_at: z.int().meta({ description: 'Unix seconds.' }),
  })
  .meta({ id: 'Rating' })
export type Rating = z.infer<typeof Rating>

export const RatingDeleted = z
  .strictObject({ object: z.literal('rating.deleted'), deleted: z.literal(true) })
  .meta({ id: 'RatingDeleted' })

export const RatingsQuery = z
  .strictObject({
    from: z.iso
      .date('must be a date (YYYY-MM-DD, in UTC)')
      .optional()
      .meta({ description: 'First day (UTC). Defaults to 29 days before `to`.' }),
    to: z.iso
      .date('must be a date (YYYY-MM-DD, in UTC)')
      .optional()
      .meta({ description: 'Last day (UTC, inclusive). Defaults to today.' }),
    group_by: z
      .enum(['day', 'agent', 'version'], { error: 'must be day, agent or version' })
      .default('day')
      .meta({ description: 'Grouping of the entries.' }),
    agent: reference().optional().meta({ description: 'Id of an agent; counts only its ratings.' }),
  })
  .refine(({ from, to }) => from === undefined || to === undefined || from <= to, {
    path: ['from'],
    error: 'must not be later than `to`',
  })
  .refine(
    ({ from, to }) =>
      from === undefined || to === undefined || Date.parse(to) - Date.parse(from) < MAX_DAYS * 86_400_000,
    { path: ['from'], error: `must be less than ${MAX_DAYS} days before \`to\`` },
  )
export type RatingsQuery = z.output<typeof RatingsQuery>

const Sums = z.strictObject({
  day: z.string().optional().meta({ description: 'UTC day; only with `group_by=day`.' }),
  agent_id: z.string().nullable().optional().meta({
    description: 'Only with `group_by=agent` or `version`; null for turns without an agent.',
  }),
  agent_version: z.int().nullable().optional().meta({ description: 'Only with `group_by=version`.' }),
  up: z.int(),
  down: z.int(),
  reasons: z.record(z.string(), z.int()).meta({ description: 'Number of ratings with each reason.' }),
})

export const RatingList = z
  .strictObject({
    object: z.literal('list'),
    from: z.string(),
    to: z.string(),
    group_by: z.enum(['day', 'agent', 'version']),
    data: z.array(Sums),
  })
  .meta({ id: 'RatingSums' })
export type RatingList = z.infer<typeof RatingList>
