/** Runs procedures on a database whose driver needs no thread. */
import type { ConversationDb, RunProcedure } from './tables.ts'

/** Runs procedures in separate transactions on the connections of `db`. */
export function runDirectly(db: ConversationDb): RunProcedure {
  return ({ run }, input) => db.transaction().execute((trx) => run(trx, input))
}
