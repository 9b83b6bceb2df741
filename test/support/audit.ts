/** Reads audit log rows, makes their insertion fail, and asserts that they contain no keys. */
import { expect } from 'vitest'
import type { AuditRow } from '../../src/identity/audit.ts'
import type { TestApp } from './app.ts'
import { failOnChange } from './database.ts'

/** Lists all audit rows, oldest first. */
export function listAuditRows(app: TestApp): Promise<AuditRow[]> {
  return app.service.deps.db.selectFrom('audit_events').selectAll().orderBy('id').execute()
}

/** Runs `act`; returns the audit rows that it adds. */
export async function auditRowsOf(app: TestApp, act: () => Promise<unknown>): Promise<AuditRow[]> {
  const before = await listAuditRows(app)
  await act()
  return (await listAuditRows(app)).slice(before.length)
}

export const publicIdOf = (key: string) => key.slice(4, 16)

export async function failAuditInserts(app: TestApp): Promise<void> {
  await failOnChange(app.service.deps.db, 'insert on audit_events', 'refused')
}

/** Asserts that the rows do not contain the secret part of a key. */
export function expectNoSecrets(rows: readonly AuditRow[]): void {
  const text = JSON.stringify(rows)
  expect(text.match(/(svc_(scoped_)?|agnt_key-)[0-9A-Za-z]{13,}/g)).toBeNull()
}
