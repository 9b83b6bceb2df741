/** Reads and writes the ratings of turns. */
import { type Selectable, sql } from 'kysely'
import type { ConversationDb, RatingTable } from '../../db/open.ts'

export type RatingRow = Selectable<RatingTable>

interface RatedTurn {
  readonly id: string
  readonly conversation_id: string
}

/**
 * Stores a rating, which replaces the source's earlier one. Returns undefined if the turn has been deleted.
 */
export async function storeRating(
  trx: ConversationDb,
  turn: RatedTurn,
  rating: Omit<RatingRow, 'turn_id'>,
): Promise<RatingRow | undefined> {
  if (!(await lockConversation(trx, turn))) return undefined
  const { value, reason, comment, updated_at } = rating
  const stored = await trx
    .insertInto('ratings')
    .values({ ...rating, turn_id: turn.id })
    .onConflict((conflict) =>
      conflict.columns(['turn_id', 'source']).doUpdateSet({ value, reason, comment, updated_at }),
    )
    .returningAll()
    .executeTakeFirstOrThrow()
  await sumRatings(trx, turn.conversation_id)
  return stored
}

/** Returns false if the source has not rated the turn. */
export async function deleteRating(
  trx: ConversationDb,
  turn: RatedTurn,
  source: RatingRow['source'],
): Promise<boolean> {
  if (!(await lockConversation(trx, turn))) return false
  const { numDeletedRows } = await trx
    .deleteFrom('ratings')
    .where('turn_id', '=', turn.id)
    .where('source', '=', source)
    .executeTakeFirst()
  await sumRatings(trx, turn.conversation_id)
  return numDeletedRows > 0n
}

/**
 * Locks the conversation, so that its sums include the ratings of other transactions. Returns false if the
 * turn was deleted.
 */
async function lockConversation(trx: ConversationDb, turn: RatedTurn): Promise<boolean> {
  await trx
    .updateTable('conversations')
    .set((eb) => ({ revision: eb('revision', '+', 1) }))
    .where('id', '=', turn.conversation_id)
    .execute()
  const found = await trx.selectFrom('turns').select('id').where('id', '=', turn.id).executeTakeFirst()
  return found !== undefined
}

/** Updates the numbers of good and bad ratings of a conversation. */
export async function sumRatings(trx: ConversationDb, conversationId: string): Promise<void> {
  const sumOf = (value: RatingTable['value']) => sql<number>`(select count(*) from ratings
    join turns on turns.id = ratings.turn_id
    where turns.conversation_id = ${conversationId} and ratings.value = ${sql.lit(value)})`
  await trx
    .updateTable('conversations')
    .set({ up: sumOf(1), down: sumOf(-1) })
    .where('id', '=', conversationId)
    .execute()
}

export function listRatings(db: ConversationDb, turnIds: readonly string[]): Promise<RatingRow[]> {
  if (turnIds.length === 0) return Promise.resolve([])
  return db
    .selectFrom('ratings')
    .selectAll()
    .where('turn_id', 'in', turnIds)
    .orderBy('created_at')
    .orderBy('source')
    .execute()
}

export interface RatingSum {
  readonly agent_id: string
  readonly agent_version: number | null
  /** Days since 1970-01-01, in UTC. */
  readonly day: number
  readonly value: number
  readonly reason: string | null
  readonly count: number
}

/**
 * Counts a tenant's ratings by agent, version, day, value and reason. `from` and `before` are Unix seconds.
 */
export function countRatings(
  db: ConversationDb,
  tenant: string,
  { from, before, agentId }: { from: number; before: number; agentId: string | undefined },
): Promise<RatingSum[]> {
  const day = sql<number>`ratings.created_at / 86400`
  return db
    .selectFrom('ratings')
    .innerJoin('turns', 'turns.id', 'ratings.turn_id')
    .select(({ fn }) => [
      'turns.agent_id',
      'turns.agent_version',
      day.as('day'),
      'ratings.value',
      'ratings.reason',
      fn.countAll<number>().as('count'),
    ])
    .where('turns.tenant', '=', tenant)
    .where('ratings.created_at', '>=', from)
    .where('ratings.created_at', '<', before)
    .$if(agentId !== undefined, (query) => query.where('turns.agent_id', '=', agentId as string))
    .groupBy(['turns.agent_id', 'turns.agent_version', day, 'ratings.value', 'ratings.reason'])
    .execute()
}
