/** Finds the turns that a visitor's change of an earlier message or answer replaces (ADR 0076). */
import type { ConversationDb } from '../../db/open.ts'
import { ServiceError } from '../../lib/errors.ts'
import type { TurnRow } from '../store.ts'
import { findReplacement, type Replacing } from './replacement-items.ts'

/** A range of turns, by number and inclusive, that leave the conversation's history. */
export interface Replacement {
  readonly how: Replacing
  readonly from: number
  readonly to: number
}

export interface ReplacedTurns {
  readonly replacement: Replacement
  /** Ids of the turns in the range that were not replaced before, oldest first. */
  readonly turns: readonly string[]
  /** Id of the turn with the visitor's message. */
  readonly question: string
  /** Id of the last turn before the range that was not replaced. */
  readonly before: string | undefined
}

interface Mark extends Pick<TurnRow, 'id' | 'number' | 'replaced'> {
  /** Whether the turn starts with a message of the visitor. */
  readonly asks: boolean
}

/**
 * Returns the turns that a change of the exchange with `turn` replaces. An exchange is a visitor's message and
 * all turns up to the next message. An edit also replaces all later exchanges.
 * @throws ServiceError `not_replaceable`
 */
export async function findReplacedTurns(
  db: ConversationDb,
  turn: TurnRow,
  how: Replacing,
): Promise<ReplacedTurns> {
  const marks = await listMarks(db, turn.conversation_id)
  const isCurrent = ({ replaced }: Mark) => replaced === null
  const at = marks.findLastIndex((mark) => mark.number <= turn.number && isCurrent(mark) && mark.asks)
  const question = marks[at]
  if (turn.replaced !== null) throw notReplaceable('the turn was already replaced')
  if (question === undefined) throw notReplaceable('the turn answers no message of the visitor')
  const first = marks[how === 'regenerated' ? at : findFirstVersion(marks, at)] ?? question
  const later = marks.slice(at + 1)
  const isLast = !later.some((mark) => isCurrent(mark) && mark.asks)
  if (how === 'regenerated' && !isLast) throw notReplaceable('a later message exists')
  const next = how === 'removed' ? later.find(({ asks }) => asks) : undefined
  const to = next === undefined ? (marks.at(-1) ?? question).number : next.number - 1
  await assertNoPerson(db, turn.conversation_id, first.id, next?.id)
  const inRange = marks.filter(({ number }) => number >= first.number && number <= to)
  return {
    replacement: { how, from: first.number, to },
    turns: inRange.filter((mark) => isCurrent(mark) || mark.replaced === 'regenerated').map(({ id }) => id),
    question: question.id,
    before: marks.findLast((mark) => mark.number < first.number && isCurrent(mark))?.id,
  }
}

/** Earlier versions of an answer directly precede the current one. */
function findFirstVersion(marks: readonly Mark[], at: number): number {
  let first = at
  while (marks[first - 1]?.replaced === 'regenerated') first -= 1
  return first
}

async function listMarks(db: ConversationDb, conversationId: string): Promise<Mark[]> {
  const rows = await db
    .selectFrom('turns')
    .select(['id', 'number', 'replaced'])
    .select(({ exists, selectFrom }) =>
      exists(
        selectFrom('items')
          .select('items.n')
          .whereRef('items.turn_id', '=', 'turns.id')
          .where('items.author', '=', 'visitor')
          .where('items.type', '=', 'message'),
      ).as('asks'),
    )
    .where('conversation_id', '=', conversationId)
    .orderBy('number')
    .execute()
  return rows.map(({ asks, ...row }) => ({ ...row, asks: Boolean(asks) }))
}

/**
 * Rejects the change if a person took part between two turns, because the person's messages would lose their
 * context. @throws ServiceError `not_replaceable`
 */
async function assertNoPerson(
  db: ConversationDb,
  conversationId: string,
  firstId: string,
  nextId: string | undefined,
): Promise<void> {
  const positionOf = async (turnId: string) => {
    const { position } = await db
      .selectFrom('items')
      .select(({ fn }) => fn.min('position').as('position'))
      .where('turn_id', '=', turnId)
      .executeTakeFirstOrThrow()
    return position
  }
  const before = nextId === undefined ? null : await positionOf(nextId)
  const outside = await db
    .selectFrom('items')
    .select(['author', 'type', 'body'])
    .where('conversation_id', '=', conversationId)
    .where('turn_id', 'is', null)
    .where('position', '>', (await positionOf(firstId)) ?? 0)
    .$if(before !== null, (query) => query.where('position', '<', before as number))
    .execute()
  if (outside.every((item) => findReplacement(item) !== undefined)) return
  throw notReplaceable('a person joined the conversation after the message')
}

function notReplaceable(why: string): ServiceError {
  return new ServiceError('conflict', `turn: cannot be replaced, because ${why}`, {
    param: 'turn',
    code: 'not_replaceable',
  })
}
