/** Hands what one tenant has used to another one. */
import type { Database } from '../db/database.ts'
import { addToCounter, listCounters } from './budget-store.ts'
import { startOf } from './days.ts'
import { parseHistogram } from './histogram.ts'
import { addDay } from './recorder.ts'
import { takeDays, updateCallOwners } from './store.ts'
import { createUsageWriter, type UsageDayRow } from './writer.ts'

/** How many calls and how many rows of daily sums went over. */
export interface MovedUsage {
  readonly calls: number
  readonly days: number
}

/**
 * Adds the tenant's usage to another one's, as far as it is written down: `usage.flush()` goes before it. The other one's budgets
 * count it too. Runs in the caller's transaction. Decision: 10.
 */
export async function moveUsage(
  trx: Database,
  fromTenantId: string,
  toTenantId: string,
): Promise<MovedUsage> {
  const writer = createUsageWriter(trx)
  const days = (await takeDays(trx, fromTenantId)).toSorted(byDay)
  for (const row of days) {
    const latency = parseHistogram(row.latency_histogram)
    const firstByte = parseHistogram(row.first_byte_histogram)
    await addDay(writer, trx, { ...row, parent_key_id: toTenantId }, { latency, firstByte })
  }
  await countInBudgets(trx, toTenantId, days)
  return { days: days.length, calls: await updateCallOwners(trx, fromTenantId, toTenantId) }
}

/** As the recorder goes about it: no two writers of the same rows wait for each other. */
function byDay(one: UsageDayRow, other: UsageDayRow): number {
  const [first, second] = [one, other].map((row) =>
    [row.day, row.agent_id, row.model, row.provider].join('\n'),
  )
  return String(first) < String(second) ? -1 : 1
}

/** A budget counts what its owner has used, and that is more now. */
async function countInBudgets(trx: Database, tenantId: string, days: readonly UsageDayRow[]): Promise<void> {
  for (const counter of await listCounters(trx, { owner_kind: 'parent', owner_id: tenantId })) {
    const isWithin = ({ day }: UsageDayRow) => startOf(counter.period, Date.parse(day)) === counter.starts_on
    const used = days
      .filter(isWithin)
      .reduce((sum, row) => sum + row.prompt_tokens + row.completion_tokens, 0)
    await addToCounter(trx, counter, { used, reserved: 0 })
  }
}
