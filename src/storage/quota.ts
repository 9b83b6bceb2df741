/** Bounds what a tenant keeps in all stores together. Security: 2.5 (per-tenant byte quota). */

import { ServiceError } from '../errors.ts'
import { lockTenant } from '../keys/keys.ts'
import { unixSeconds } from '../lib/clock.ts'
import type { Dependencies } from './dependencies.ts'
import { sumKeptBytes } from './store.ts'

type QuotaDeps = Pick<Dependencies, 'config' | 'db' | 'clock'>

/** How many bytes more the tenant may keep; without a quota there is no end to it. */
export async function countFreeBytes({ config, db, clock }: QuotaDeps, tenantId: string): Promise<number> {
  const { storageQuotaBytes } = config.limits
  if (storageQuotaBytes === 0) return Number.POSITIVE_INFINITY
  return Math.max(0, storageQuotaBytes - (await sumKeptBytes(db, tenantId, unixSeconds(clock))))
}

/**
 * Refuses what would take the tenant over its quota. Runs in the transaction that adds it, before anything is added; of two that
 * would fit alone but not together the second is refused.
 * @throws ServiceError `too_large` (`storage_quota_exceeded`)
 */
export async function assertWithinQuota(deps: QuotaDeps, tenantId: string, sizeBytes: number): Promise<void> {
  const { storageQuotaBytes } = deps.config.limits
  if (storageQuotaBytes === 0) return
  await lockTenant(deps, tenantId)
  if (sizeBytes > (await countFreeBytes(deps, tenantId))) throw quotaExceeded(storageQuotaBytes)
}

export function quotaExceeded(quotaBytes: number): ServiceError {
  const message = `This does not fit into the ${quotaBytes} bytes that the key may keep; delete files to make room.`
  return new ServiceError('too_large', message, { code: 'storage_quota_exceeded' })
}
