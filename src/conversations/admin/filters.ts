/** Converts filters on conversations, turns, ratings and tags to SQL conditions. */
import { type Expression, type ExpressionBuilder, type SelectQueryBuilder, type SqlBool, sql } from 'kysely'
import type { ConversationTables, RatingTable } from '../../db/open.ts'
import { ratingReasons } from '../ratings/schema.ts'
import type { SearchTerm } from '../search/query.ts'
import type { ConversationRow, TurnRow } from '../store.ts'

export const turnReasons = ['max_output_tokens', 'content_filter', 'interrupted', 'taken_over'] as const
export const turnStatuses = [
  'queued',
  'in_progress',
  'completed',
  'incomplete',
  'failed',
  'cancelled',
] as const satisfies TurnRow['status'][]

/**
 * A conversation must match all filters. Filters on turns and ratings, except for `unanswered`, must match
 * the same turn.
 */
export interface ConversationFilter {
  /** Undefined for all tenants. */
  readonly tenantId?: string | undefined
  readonly id?: string | undefined
  readonly agentId?: string | undefined
  /** Earliest creation time (Unix seconds), inclusive. */
  readonly from?: number | undefined
  /** Latest creation time (Unix seconds), exclusive. */
  readonly to?: number | undefined
  readonly channel?: ConversationRow['channel'] | undefined
  readonly mode?: ConversationRow['mode'] | undefined
  /** The person who answers. */
  readonly assignee?: string | undefined
  readonly visitorId?: string | undefined
  readonly tag?: string | undefined
  readonly rating?: 'up' | 'down' | undefined
  readonly reason?: (typeof ratingReasons)[number] | (typeof turnReasons)[number] | undefined
  /** `failed`: a turn ended with an error. `unanswered`: see `isUnanswered`. */
  readonly status?: TurnRow['status'] | 'unanswered' | undefined
  readonly error?: string | undefined
  readonly tool?: string | undefined
  /** A model, or a provider and a model: `provider/model`. */
  readonly model?: string | undefined
  readonly version?: number | undefined
  readonly minTokens?: number | undefined
  readonly search?: readonly SearchTerm[] | undefined
}

type Query<Output> = SelectQueryBuilder<ConversationTables, 'conversations', Output>
type Builder = ExpressionBuilder<ConversationTables, 'conversations'>

const MICROSECONDS = 1_000_000

/** Applies the filters that can use an index of conversations. */
export function whereIndexed<Output>(
  query: Query<Output>,
  { tenantId, id, agentId, visitorId, from, to }: ConversationFilter,
): Query<Output> {
  return query
    .$if(tenantId !== undefined, (part) => part.where('tenant', '=', tenantId as string))
    .$if(id !== undefined, (part) => part.where('id', '=', id as string))
    .$if(agentId !== undefined, (part) => part.where('agent_id', '=', agentId as string))
    .$if(visitorId !== undefined, (part) => part.where('visitor_id', '=', visitorId as string))
    .$if(from !== undefined, (part) => part.where('position', '>=', (from as number) * MICROSECONDS))
    .$if(to !== undefined, (part) => part.where('position', '<', (to as number) * MICROSECONDS))
}

/** Returns the conditions of the other filters, except for `search`. */
export function listConditions(eb: Builder, filter: ConversationFilter): Expression<SqlBool>[] {
  const { channel, mode, assignee, tag, minTokens, status } = filter
  const conditions: Expression<SqlBool>[] = []
  if (channel !== undefined) conditions.push(eb('channel', '=', channel))
  if (mode !== undefined) conditions.push(eb('mode', '=', mode))
  if (assignee !== undefined) conditions.push(eb('assignee', '=', assignee))
  if (minTokens !== undefined)
    conditions.push(eb(eb('prompt_tokens', '+', eb.ref('completion_tokens')), '>=', minTokens))
  if (tag !== undefined)
    conditions.push(
      eb(
        'conversations.id',
        'in',
        eb
          .selectFrom('conversation_tags')
          .select('conversation_tags.conversation_id')
          .where('conversation_tags.tag', '=', tag),
      ),
    )
  if (status === 'unanswered') conditions.push(isUnanswered(eb))
  if (status === 'failed') conditions.push(eb('failures', '>', 0))
  if (filter.rating !== undefined) conditions.push(eb(filter.rating, '>', 0))
  const turn = hasTurn(eb, filter)
  return turn === undefined ? conditions : [...conditions, turn]
}

/**
 * Returns the condition that the model answers the conversation, no turn is running, and the newest message is
 * a question, or the service's message that no person has answered.
 */
function isUnanswered(eb: Builder): Expression<SqlBool> {
  const newestAuthor = eb
    .selectFrom('items')
    .select('items.author')
    .whereRef('items.conversation_id', '=', 'conversations.id')
    .where('items.type', '=', 'message')
    .where('items.for_visitor', '=', 1)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('turns')
            .select('turns.id')
            .whereRef('turns.id', '=', 'items.turn_id')
            .where('turns.replaced', 'is not', null),
        ),
      ),
    )
    .orderBy('items.position', 'desc')
    .limit(1)
  const running = eb
    .selectFrom('turns')
    .select('turns.id')
    .whereRef('turns.conversation_id', '=', 'conversations.id')
    .where('turns.status', 'in', ['queued', 'in_progress'])
  return eb.and([
    eb('conversations.mode', '=', 'model'),
    eb(newestAuthor, 'in', ['visitor', 'service']),
    eb.not(eb.exists(running)),
  ])
}

/**
 * Returns the condition that one turn matches all filters on turns and ratings; undefined without such
 * filters.
 */
function hasTurn(eb: Builder, filter: ConversationFilter): Expression<SqlBool> | undefined {
  const { status, reason, error, tool, model, version } = filter
  const turns = eb
    .selectFrom('turns')
    .select('turns.id')
    .whereRef('turns.conversation_id', '=', 'conversations.id')
  const turnReason = turnReasons.find((one) => one === reason)
  const rated = ratedAs(filter)
  const filtered = turns
    .$if(status !== undefined && status !== 'unanswered', (part) =>
      // An error after the answer has begun makes the turn incomplete.
      status === 'failed'
        ? part.where('turns.error_code', 'is not', null)
        : part.where('turns.status', '=', status as TurnRow['status']),
    )
    .$if(turnReason !== undefined, (part) => part.where('turns.reason', '=', turnReason as string))
    .$if(error !== undefined, (part) => part.where('turns.error_code', '=', error as string))
    .$if(version !== undefined, (part) => part.where('turns.agent_version', '=', version as number))
    .$if(model !== undefined, (part) =>
      part.where(({ or, eb: each }) =>
        or([
          each('turns.model', '=', model as string),
          sql<SqlBool>`turns.provider || '/' || turns.model = ${model}`,
        ]),
      ),
    )
    .$if(tool !== undefined, (part) =>
      part.where(({ exists, selectFrom }) =>
        exists(
          selectFrom('items')
            .select('items.n')
            .whereRef('items.turn_id', '=', 'turns.id')
            .where('items.name', '=', tool as string),
        ),
      ),
    )
    .$if(rated !== undefined, (part) => part.where(rated as Expression<SqlBool>))
  const isUnused =
    (status ?? 'unanswered') === 'unanswered' &&
    [turnReason, error, version, model, tool, rated].every((one) => one === undefined)
  return isUnused ? undefined : eb.exists(filtered)
}

function ratedAs({ rating, reason }: ConversationFilter): Expression<SqlBool> | undefined {
  const ratingReason = ratingReasons.find((one) => one === reason)
  if (rating === undefined && ratingReason === undefined) return undefined
  const value: RatingTable['value'] = rating === 'up' ? 1 : -1
  const isValue = rating === undefined ? sql`true` : sql`ratings.value = ${sql.lit(value)}`
  const isReason = ratingReason === undefined ? sql`true` : sql`ratings.reason = ${ratingReason}`
  return sql<SqlBool>`exists (select 1 from ratings where ratings.turn_id = turns.id and ${isValue} and ${isReason})`
}
