/** Provides helpers for audit log tests: its rows, and a table that rejects inserts. */
import { expect } from 'vitest'
import type { AuditRow } from '../../src/identity/audit.ts'
import type { TestApp } from './app.ts'
import { failAt } from './database.ts'

/** Lists every row, oldest first. */
export function listAuditRows(app: TestApp): Promise<AuditRow[]> {
  return app.service.deps.db.selectFrom('audit_events').selectAll().orderBy('id').execute()
}

/** Runs an action; returns the rows that it added. */
export async function auditOf(app: TestApp, act: () => Promise<unknown>): Promise<AuditRow[]> {
  const before = await listAuditRows(app)
  await act()
  return (await listAuditRows(app)).slice(before.length)
}

/** Returns the public id within a parent key. */
export const publicIdOf = (key: string) => key.slice(4, 16)

/** Makes the database reject every further audit row, so that the change it belongs to must fail too. */
export async function refuseAudit(app: TestApp): Promise<void> {
  await failAt(app.service.deps.db, 'insert on audit_events', 'refused')
}

/** Expects that no column of any row contains more of a key than its public part. */
export function expectNoSecrets(rows: readonly AuditRow[]): void {
  const text = JSON.stringify(rows)
  expect(text.match(/(svc_(scoped_)?|agnt_key-)[0-9A-Za-z]{13,}/g)).toBeNull()
}
