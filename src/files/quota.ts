/** Bounds what a tenant keeps in all stores together. Security: 2.5 (per-tenant byte quota). */

import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import type { SizeLimit } from '../http/form-body.ts'
import { lockTenant } from '../identity/keys.ts'
import { type Clock, unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import type { Dependencies } from '../storage/dependencies.ts'

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

/** What has expired by `now` (Unix seconds) is not counted any more, whether it was swept or not. */
export async function sumKeptBytes(db: Database, tenantId: string, now: number): Promise<number> {
  const files = db.selectFrom('files').select(({ fn }) => fn.sum<number>('size_bytes').as('bytes'))
  const artifacts = db.selectFrom('artifacts').select(({ fn }) => fn.sum<number>('kept_bytes').as('bytes'))
  const ofFiles = await files
    .where('parent_key_id', '=', tenantId)
    .where((where) => where.or([where('expires_at', 'is', null), where('expires_at', '>', now)]))
    .executeTakeFirstOrThrow()
  const ofArtifacts = await artifacts
    .where('parent_key_id', '=', tenantId)
    .where((where) => where.or([where('expires_at', 'is', null), where('expires_at', '>', now)]))
    .executeTakeFirstOrThrow()
  return Number(ofFiles.bytes ?? 0) + Number(ofArtifacts.bytes ?? 0)
}

/** The limit for a file of the tenant's that is about to come in. */
export async function findSizeLimit(
  deps: { readonly config: Config; readonly db: Database; readonly clock: Clock },
  tenantId: string,
  maxBytes: number,
): Promise<SizeLimit> {
  const freeBytes = await countFreeBytes(deps, tenantId)
  return freeBytes < maxBytes
    ? { maxBytes: freeBytes, refuse: () => quotaExceeded(deps.config.limits.storageQuotaBytes) }
    : { maxBytes, refuse: () => tooLarge(maxBytes) }
}

function tooLarge(maxBytes: number): ServiceError {
  return new ServiceError('too_large', `The file is larger than the limit of ${maxBytes} bytes.`)
}
