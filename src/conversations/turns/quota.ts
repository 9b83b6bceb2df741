/** Limits the bytes that a tenant's stored conversations take. */
import { ServiceError } from '../../lib/errors.ts'
import { createTtlCache } from '../../lib/ttl-cache.ts'
import type { Dependencies } from '../dependencies.ts'
import { sumTenantBytes } from '../store.ts'

const CACHED_MS = 10_000
const MAX_TENANTS = 1_000

/** Number of bytes that a tenant has stored; new bytes are added while the number is cached. */
export class UsedBytes {
  bytes: number

  constructor(bytes: number) {
    this.bytes = bytes
  }

  add(bytes: number): void {
    this.bytes += bytes
  }
}

export class StorageQuota {
  private readonly deps: Pick<Dependencies, 'config' | 'storage'>
  private readonly cache: ReturnType<typeof createTtlCache<UsedBytes>>

  constructor(deps: Pick<Dependencies, 'config' | 'storage' | 'clock'>) {
    this.deps = deps
    this.cache = createTtlCache<UsedBytes>(deps.clock, { max: MAX_TENANTS, keepMs: () => CACHED_MS })
  }

  /**
   * Returns undefined if there is no limit, or if nothing has been stored yet. @throws ServiceError
   * `storage_full`
   */
  async assertRoom(tenantId: string): Promise<UsedBytes | undefined> {
    const { config, storage } = this.deps
    const { maxBytes } = config.conversations
    const opened = maxBytes === 0 ? undefined : await storage.find()
    if (opened === undefined) return undefined
    const used = await this.cache.get(
      tenantId,
      async () => new UsedBytes(await sumTenantBytes(opened.read, tenantId)),
    )
    if (used.bytes < maxBytes) return used
    throw new ServiceError(
      'storage_full',
      `The stored conversations have reached the limit of ${maxBytes} bytes.`,
    )
  }

  /** Clears the cached numbers after data was deleted or moved. */
  forget(): void {
    this.cache.invalidate()
  }
}
