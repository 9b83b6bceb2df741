/** Creates the pseudonyms of visitors and conversations, and deletes what budgets have counted for them. */
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import type { Database } from '../db/database.ts'
import type { Sealer } from '../lib/sealer.ts'

type SubjectKind = 'visitor' | 'conversation'

const PURPOSE = 'parley budget subjects'
const KEY_BYTES = 32
const SUBJECT_BYTES = 16

/** Derives the key of the pseudonyms from the installation's secret. */
export function deriveSubjectKey(sealer: Pick<Sealer, 'derive'>): KeyObject {
  return createSecretKey(sealer.derive(PURPOSE, KEY_BYTES))
}

export function toSubject(key: KeyObject, kind: SubjectKind, id: string): string {
  const digest = createHmac('sha256', key).update(`${kind}\n${id}`).digest()
  return digest.subarray(0, SUBJECT_BYTES).toString('base64url')
}

/** Deletes the counters, reservations, grants and adjustments of deleted visitors or conversations. */
export type ForgetSpending = (kind: SubjectKind, ids: readonly string[]) => Promise<void>

/** `loadSealer` is called only if there is a budget of visitors or conversations. */
export function createForgetSpending(
  db: Database,
  loadSealer: () => Promise<Pick<Sealer, 'derive' | 'deriveFormer'>>,
): ForgetSpending {
  return async (kind, ids) => {
    if (ids.length === 0 || !(await hasBudgetOf(db, kind))) return
    const sealer = await loadSealer()
    const former = sealer.deriveFormer(PURPOSE, KEY_BYTES).map((key) => createSecretKey(key))
    const keys = [deriveSubjectKey(sealer), ...former]
    const subjects = ids.flatMap((id) => keys.map((key) => toSubject(key, kind, id)))
    await db.transaction().execute((trx) => deleteSubjects(trx, kind, subjects))
  }
}

async function hasBudgetOf(db: Database, kind: SubjectKind): Promise<boolean> {
  const row = await db
    .selectFrom('budgets')
    .select('id')
    .where('scope_kind', '=', kind)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** Deletes everything that budgets have stored about these visitors or conversations. */
async function deleteSubjects(trx: Database, kind: SubjectKind, subjects: readonly string[]): Promise<void> {
  for (const table of ['budget_reservations', 'budget_entries', 'budget_counters'] as const)
    await trx
      .deleteFrom(table)
      .where('budget_id', 'in', trx.selectFrom('budgets').select('id').where('scope_kind', '=', kind))
      .where('subject', 'in', subjects)
      .execute()
}
