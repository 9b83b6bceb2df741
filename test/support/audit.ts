/** What tests of the audit share: the rows that were written, and a table that refuses more. */
import { expect } from 'vitest'
import type { AuditRow } from '../../src/identity/audit.ts'
import type { TestApp } from './app.ts'
import { failAt } from './database.ts'

/** Every row, oldest first. */
export function listAuditRows(app: TestApp): Promise<AuditRow[]> {
  return app.service.deps.db.selectFrom('audit_events').selectAll().orderBy('id').execute()
}

/** What an act left behind: the rows that were not there before it. */
export async function auditOf(app: TestApp, act: () => Promise<unknown>): Promise<AuditRow[]> {
  const before = await listAuditRows(app)
  await act()
  return (await listAuditRows(app)).slice(before.length)
}

/** The public id inside a parent key. */
export const publicIdOf = (key: string) => key.slice(4, 16)

/** Has the database refuse every further row: what belongs to it must then fail as a whole. */
export async function refuseAudit(app: TestApp): Promise<void> {
  await failAt(app.service.deps.db, 'insert on audit_events', 'refused')
}

/** No text in any column of any row is more of a key than its public part. */
export function expectNoSecrets(rows: readonly AuditRow[]): void {
  const text = JSON.stringify(rows)
  expect(text.match(/(svc_(scoped_)?|agnt_key-)[0-9A-Za-z]{13,}/g)).toBeNull()
}
