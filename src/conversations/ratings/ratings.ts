/** Rates turns, and sums ratings by day, agent or version. */
import type { ConversationDatabase, ConversationDb } from '../../db/open.ts'
import { type Clock, unixSeconds } from '../../lib/clock.ts'
import { ServiceError } from '../../lib/errors.ts'
import type { EventPublisher } from '../../webhooks/dependencies.ts'
import type { Conversations } from '../conversations.ts'
import type { TurnRow } from '../store.ts'
import { recordRated } from '../webhooks/events.ts'
import {
  countRatings,
  deleteRating,
  listRatings,
  type RatingRow,
  type RatingSum,
  storeRating,
} from './rows.ts'
import type { NewRating, Rating, RatingList, RatingsQuery } from './schema.ts'

const DAY_SECONDS = 86_400
const DEFAULT_DAYS = 30

export interface RatingDependencies {
  readonly conversations: Conversations
  readonly clock: Clock
  readonly webhooks?: Pick<EventPublisher, 'find'>
}

/** Finds a turn by its id or by the id of its response. @throws ServiceError `not_found` */
export async function findRatedTurn(
  { conversations }: RatingDependencies,
  tenantId: string,
  id: string,
): Promise<TurnRow> {
  const key = id.startsWith('resp_') ? 'response_id' : 'id'
  const turn = await conversations.reader.findTurn(tenantId, key, id)
  if (turn === undefined) throw turnNotFound(id)
  return turn
}

export function turnNotFound(id: string): ServiceError {
  return new ServiceError('not_found', `Turn with id '${id}' not found.`, { param: 'turn_id' })
}

/** Rates a turn, and replaces the earlier rating from the same source. @throws ServiceError */
export async function rateTurn(
  { conversations, clock, webhooks }: RatingDependencies,
  turn: TurnRow,
  source: RatingRow['source'],
  { value, reason, comment }: NewRating,
): Promise<Rating> {
  if (turn.status === 'queued' || turn.status === 'in_progress')
    throw new ServiceError('conflict', 'The turn is still running; rate it when it has ended.', {
      code: 'turn_running',
    })
  const { write } = await conversations.storage.open()
  const nowSeconds = unixSeconds(clock)
  const rating: Omit<RatingRow, 'turn_id'> = {
    ...{ source, reason: reason ?? null, comment: comment || null },
    ...{ value: value === 'up' ? 1 : -1, created_at: nowSeconds, updated_at: nowSeconds },
  }
  const subscribers = await webhooks?.find()
  const stored = await write.transaction().execute(async (trx) => {
    const row = await storeRating(trx, turn, rating)
    const rated = { turn_id: turn.id, source, value, reason: rating.reason }
    if (row !== undefined) await recordRated(trx, subscribers, turn.conversation_id, rated)
    return row
  })
  if (stored === undefined) throw turnNotFound(turn.id)
  conversations.notify(turn.conversation_id, turn.tenant)
  return renderRating(stored)
}

/** Deletes the rating of a source. @throws ServiceError `not_found` without a rating */
export async function unrateTurn(
  { conversations }: RatingDependencies,
  turn: TurnRow,
  source: RatingRow['source'],
): Promise<{ object: 'rating.deleted'; deleted: true }> {
  const { write, scrub } = await conversations.storage.open()
  const isDeleted = await write.transaction().execute((trx) => deleteRating(trx, turn, source))
  if (!isDeleted) throw new ServiceError('not_found', 'You have not rated this turn.', { param: 'turn_id' })
  await scrub()
  conversations.notify(turn.conversation_id, turn.tenant)
  return { object: 'rating.deleted', deleted: true }
}

function renderRating({ source, value, reason, comment, created_at, updated_at }: RatingRow): Rating {
  return {
    object: 'rating',
    source,
    value: value === 1 ? 'up' : 'down',
    reason: reason as Rating['reason'],
    comment,
    created_at,
    updated_at,
  }
}

/** Returns the ratings of each turn; an empty list for a turn without ratings. */
export async function listRatingsOfTurns(
  { read }: Pick<ConversationDatabase, 'read'>,
  turnIds: readonly string[],
): Promise<Map<string, Rating[]>> {
  const ratings = await listRatings(read, turnIds)
  const byTurn = new Map<string, Rating[]>(turnIds.map((id) => [id, []]))
  for (const row of ratings) byTurn.get(row.turn_id)?.push(renderRating(row))
  return byTurn
}

/** Lists the visitor's ratings of turns. */
export async function listOwnRatings(db: ConversationDb, turnIds: readonly string[]) {
  const rows = await listRatings(db, [...new Set(turnIds)])
  return rows
    .filter(({ source }) => source === 'visitor')
    .map((row) => {
      const { value, reason, comment } = renderRating(row)
      return { turn: row.turn_id, value, reason, comment }
    })
}

/** Sums a tenant's ratings; each counts on the UTC day on which it was first given. */
export async function readRatings(
  { conversations, clock }: RatingDependencies,
  tenantId: string,
  { from, to, group_by, agent }: RatingsQuery,
): Promise<RatingList> {
  const today = Math.floor(unixSeconds(clock) / DAY_SECONDS)
  const last = to === undefined ? Math.max(today, toDay(from)) : toDay(to)
  const first = from === undefined ? last - DEFAULT_DAYS + 1 : toDay(from)
  const opened = await conversations.storage.find()
  const range = { from: first * DAY_SECONDS, before: (last + 1) * DAY_SECONDS, agentId: agent }
  const sums = opened === undefined ? [] : await countRatings(opened.read, tenantId, range)
  return {
    ...{ object: 'list', from: renderDay(first), to: renderDay(last), group_by },
    data: groupSums(sums, group_by),
  }
}

function toDay(date: string | undefined): number {
  return date === undefined ? 0 : Date.parse(date) / 1000 / DAY_SECONDS
}

function renderDay(day: number): string {
  return new Date(day * DAY_SECONDS * 1000).toISOString().slice(0, 10)
}

type Entry = RatingList['data'][number]

function groupSums(sums: readonly RatingSum[], by: RatingsQuery['group_by']): Entry[] {
  const entries = new Map<string, Entry>()
  for (const { value, reason, count, ...sum } of sums) {
    const group = groupOf(sum, by)
    const key = JSON.stringify(group)
    const entry = entries.get(key) ?? { ...group, up: 0, down: 0, reasons: {} }
    entries.set(key, entry)
    entry[value === 1 ? 'up' : 'down'] += count
    if (reason !== null) entry.reasons[reason] = (entry.reasons[reason] ?? 0) + count
  }
  const order = (one: Entry) => JSON.stringify([one.day, one.agent_id, String(one.agent_version).padStart(9)])
  return [...entries.values()].sort((one, other) => (order(one) < order(other) ? -1 : 1))
}

function groupOf(
  { day, agent_id, agent_version }: Pick<RatingSum, 'day' | 'agent_id' | 'agent_version'>,
  by: RatingsQuery['group_by'],
): Pick<Entry, 'day' | 'agent_id' | 'agent_version'> {
  if (by === 'day') return { day: renderDay(day) }
  const agent = { agent_id: agent_id === '' ? null : agent_id }
  return by === 'agent' ? agent : { ...agent, agent_version }
}
