/** Tracks whether turns can be stored, based on failures and on probes after a failure. */
import { mapConstraintError } from '../../db/open.ts'
import { ServiceError, toServiceError } from '../../lib/errors.ts'
import type { UnstoredReason } from '../../telemetry/conversation-metrics.ts'
import type { Dependencies } from '../dependencies.ts'
import type { TurnWriter } from './writer.ts'

/** Minimum time between two probes while the store fails. */
const PROBE_EVERY_MS = 1_000

type HealthDependencies = Pick<Dependencies, 'storage' | 'clock'> & {
  readonly writer: Pick<TurnWriter, 'health'>
}

export class StoreHealth {
  private readonly deps: HealthDependencies
  private hasFailed = false
  private probedAtMs = Number.NEGATIVE_INFINITY
  private probing: Promise<void> | undefined

  constructor(deps: HealthDependencies) {
    this.deps = deps
  }

  /** Whether the last turn and the last events could be stored. */
  get isUp(): boolean {
    return !this.hasFailed && this.deps.writer.health === 'up'
  }

  /** Observes whether a new turn can be stored; a rejected turn does not mean that the store has failed. */
  observe(accepting: Promise<void>): void {
    accepting.then(
      () => {
        this.hasFailed = false
      },
      (error) => {
        if (isStoreFailure(error)) this.hasFailed = true
      },
    )
  }

  /**
   * After a failure, writes to the store to check whether it has recovered, because there may be no later
   * turn that shows it.
   */
  async check(): Promise<'up' | 'down'> {
    const nowMs = this.deps.clock.monotonic()
    if (this.hasFailed && nowMs - this.probedAtMs >= PROBE_EVERY_MS) {
      this.probing ??= this.probe(nowMs)
      await this.probing
    }
    return this.isUp ? 'up' : 'down'
  }

  private async probe(nowMs: number): Promise<void> {
    this.probedAtMs = nowMs
    try {
      const { write } = await this.deps.storage.open()
      // Matches no row. With SQLite, the statement still has to acquire the write lock.
      await write.updateTable('turns').set({ owner: null }).where('id', '=', '').execute()
      this.hasFailed = false
    } catch {
      // The store is considered down until the next probe.
    } finally {
      this.probing = undefined
    }
  }
}

/** Why a turn could not be stored. */
export function toUnstoredReason(error: unknown): UnstoredReason {
  const { reason } = toServiceError(error)
  if (reason === 'too_large') return 'too_large'
  if (reason !== 'storage_full') return 'unavailable'
  return error instanceof ServiceError ? 'quota' : 'full'
}

function isStoreFailure(error: unknown): boolean {
  if (error instanceof ServiceError || mapConstraintError(error) !== undefined) return false
  return toServiceError(error).reason !== 'invalid_value'
}
