/** Publishes which turns of other replicas the clients of this replica read. */
import type { Bus } from '../../replicas/bus.ts'

const RENEW_MS = 2_000
/** Milliseconds after which a replica that has not renewed its message no longer counts as a reader. */
export const REMOTE_READER_MS = 3 * RENEW_MS

export interface RemoteReader {
  readonly turnId: string
  readonly replica: string
  readonly isReading: boolean
}

/** Counts the readers of other replicas' turns, and publishes which turns have any. */
export class RemoteReaders {
  private readonly bus: Bus
  private readonly replica: string
  private readonly counts = new Map<string, number>()
  private readonly renewing: NodeJS.Timeout

  constructor(bus: Bus, replica: string) {
    this.bus = bus
    this.replica = replica
    this.renewing = setInterval(() => {
      for (const turnId of this.counts.keys()) this.publish(turnId, true)
    }, RENEW_MS).unref()
  }

  /** Counts a reader; the returned function removes it. */
  add(turnId: string): () => void {
    const count = this.counts.get(turnId) ?? 0
    this.counts.set(turnId, count + 1)
    if (count === 0) this.publish(turnId, true)
    return () => {
      const left = (this.counts.get(turnId) ?? 1) - 1
      if (left > 0) this.counts.set(turnId, left)
      else {
        this.counts.delete(turnId)
        this.publish(turnId, false)
      }
    }
  }

  close(): void {
    clearInterval(this.renewing)
  }

  private publish(turnId: string, isReading: boolean): void {
    if (this.bus.reachesOthers)
      this.bus.publish('read-turn', `${turnId} ${this.replica} ${isReading ? 'reading' : 'left'}`)
  }
}

export function parseRemoteReader(text: string): RemoteReader {
  const [turnId = '', replica = '', state] = text.split(' ')
  return { turnId, replica, isReading: state === 'reading' }
}
