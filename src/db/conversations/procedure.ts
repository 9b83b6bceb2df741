/** Runs procedures in this thread, for databases without a write thread. */
import type { ConversationDb, RunProcedure } from './tables.ts'

/** Runs procedures in separate transactions on the connections of `db`. */
export function runDirectly(db: ConversationDb): RunProcedure {
  return ({ run }, input) => db.transaction().execute((trx) => run(trx, input))
}
