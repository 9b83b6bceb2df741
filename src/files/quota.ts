/** Limits the total number of bytes that a tenant stores in files and artifacts. */
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import type { SizeLimit } from '../http/form-body.ts'
import { lockTenant } from '../identity/keys.ts'
import { type Clock, unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { sumFileBytes } from './store.ts'

interface QuotaOptions {
  readonly config: Config
  readonly clock: Clock
  readonly sumArtifactBytes: typeof sumFileBytes
}

const SHARE_RESERVED_AHEAD = 1 / 8

export class StorageQuota {
  private readonly options: QuotaOptions

  constructor(options: QuotaOptions) {
    this.options = options
  }

  /** Returns the number of bytes that a tenant may still store; infinite without a quota. */
  async countFreeBytes(db: Database, tenantId: string): Promise<number> {
    const { config, clock, sumArtifactBytes } = this.options
    const { storageQuotaBytes } = config.limits
    if (storageQuotaBytes === 0) return Number.POSITIVE_INFINITY
    const now = unixSeconds(clock)
    const fileBytes = await sumFileBytes(db, tenantId, now)
    return Math.max(0, storageQuotaBytes - fileBytes - (await sumArtifactBytes(db, tenantId, now)))
  }

  /**
   * Checks that `sizeBytes` fits in the quota. Call it in the transaction that adds the bytes, because it
   * locks the tenant.
   * @throws ServiceError `too_large` (`storage_quota_exceeded`)
   */
  async assertFits(trx: Database, tenantId: string, sizeBytes: number): Promise<void> {
    if (this.options.config.limits.storageQuotaBytes === 0) return
    await lockTenant({ db: trx }, tenantId)
    if (sizeBytes > (await this.countFreeBytes(trx, tenantId))) throw this.exceeded()
  }

  /**
   * Returns the number of bytes to reserve for an upload of unknown length, from `leastBytes` to `mostBytes`.
   * The number is lower near the quota, so that concurrent uploads can use all of it. @throws ServiceError
   * `too_large` (`storage_quota_exceeded`)
   */
  async countReservable(
    trx: Database,
    tenantId: string,
    leastBytes: number,
    mostBytes: number,
  ): Promise<number> {
    if (this.options.config.limits.storageQuotaBytes === 0) return Math.max(leastBytes, mostBytes)
    await lockTenant({ db: trx }, tenantId)
    const freeBytes = await this.countFreeBytes(trx, tenantId)
    if (leastBytes > freeBytes) throw this.exceeded()
    return Math.max(leastBytes, Math.min(mostBytes, Math.floor(freeBytes * SHARE_RESERVED_AHEAD)))
  }

  exceeded(): ServiceError {
    const { storageQuotaBytes } = this.options.config.limits
    const message = `The storage quota of ${storageQuotaBytes} bytes is exceeded; delete files to free up space.`
    return new ServiceError('too_large', message, { code: 'storage_quota_exceeded' })
  }

  async findSizeLimit(db: Database, tenantId: string): Promise<SizeLimit> {
    const maxBytes = this.options.config.limits.maxFileBytes
    const freeBytes = await this.countFreeBytes(db, tenantId)
    if (freeBytes < maxBytes) return { maxBytes: freeBytes, refuse: () => this.exceeded() }
    const message = `The file is larger than the limit of ${maxBytes} bytes.`
    return { maxBytes, refuse: () => new ServiceError('too_large', message) }
  }
}
