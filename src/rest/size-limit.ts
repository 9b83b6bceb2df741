/** How large a file may be: as large as one may be at all, or as its owner has room for. */

import type { Config } from '../config.ts'
import type { Database } from '../db/database.ts'
import { ServiceError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import { countFreeBytes, quotaExceeded } from '../storage/quota.ts'

/** The largest file that is taken in. */
export interface SizeLimit {
  readonly maxBytes: number
  /** Says why a larger one is not. */
  refuse(): ServiceError
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
