/** Ends the turns whose process has stopped. */
import type { ConversationStorage } from '../../db/open.ts'
import { listAbandonedTurns, type TurnRow } from '../store.ts'
import { endAbandoned } from '../turns/procedures.ts'

interface Sweeper {
  /** The process that ends the turns. */
  readonly owner: string
  /**
   * True if no other server uses the database, so that all running turns of other processes are abandoned.
   */
  readonly isOnly: boolean
  readonly nowSeconds: number
}

/** Ends abandoned turns, using the events that they have stored. Calls `onEnded` after each. */
export async function endAbandonedTurns(
  storage: ConversationStorage,
  { owner, isOnly, nowSeconds }: Sweeper,
  onEnded: (turn: TurnRow) => void,
): Promise<void> {
  const opened = await storage.find()
  if (opened === undefined) return
  const turns = await listAbandonedTurns(opened.read, nowSeconds, isOnly ? owner : undefined)
  for (const turn of turns) if (await opened.run(endAbandoned, { turn, owner, nowSeconds })) onEnded(turn)
}
