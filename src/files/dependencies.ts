/** Declares the services that the files module depends on. */
import type { Logger } from 'pino'
import type { Database } from '../db/database.ts'
import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/ids.ts'
import type { Blobs } from '../storage/blobs.ts'
import type { StorageQuota } from './quota.ts'

export interface Dependencies {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly nextPosition: () => number
  readonly log: Logger
  readonly fileBlobs: Blobs
  readonly quota: StorageQuota
}
