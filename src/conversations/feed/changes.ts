/** Reports to owners which of their conversations have changed. */
import { EventEmitter } from 'node:events'
import type { ConversationStorage } from '../../db/open.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Bus } from '../../replicas/bus.ts'

/** Minimum time between two events. */
const INTERVAL_MS = 1_000

/** Polling interval; a poll finds activity whose notification was lost. */
const POLL_MS = 10_000

const MAX_LISTED = 100

/** The ids of the changed conversations; null if any conversation may have changed. */
export interface ChangedConversations {
  readonly conversations: readonly string[] | null
}

interface ChangesDependencies {
  readonly storage: ConversationStorage
  readonly clock: Clock
  readonly bus: Bus
}

export class ConversationChanges {
  private readonly deps: ChangesDependencies
  private readonly listeners = new EventEmitter().setMaxListeners(0)

  constructor(deps: ChangesDependencies) {
    this.deps = deps
    deps.bus.subscribe('conversation', (text) => {
      const [tenantId = '', id = ''] = text.split(' ')
      this.listeners.emit(tenantId, id)
    })
    deps.bus.onGap(() => {
      for (const tenantId of this.listeners.eventNames()) this.listeners.emit(tenantId, undefined)
    })
  }

  /** Reports a change on all replicas. */
  publish(tenantId: string, id: string): void {
    this.listeners.emit(tenantId, id)
    if (this.deps.bus.reachesOthers) this.deps.bus.publish('conversation', `${tenantId} ${id}`)
  }

  /** Yields once immediately, and then at most once per second what has changed since the last event. */
  async *follow(tenantId: string, signal: AbortSignal): AsyncGenerator<ChangedConversations, void, void> {
    const changed = new Set<string>()
    let isAnyChanged = true
    let wake = () => {}
    const onChange = (id: string | undefined) => {
      if (id === undefined || changed.size === MAX_LISTED) isAnyChanged = true
      else changed.add(id)
      wake()
    }
    this.listeners.on(tenantId, onChange)
    try {
      let newest = ''
      while (!signal.aborted) {
        if (isAnyChanged || changed.size > 0) {
          const conversations = isAnyChanged ? null : [...changed]
          isAnyChanged = false
          changed.clear()
          newest = await this.findNewest(tenantId)
          yield { conversations }
          await this.wait(INTERVAL_MS, signal)
          continue
        }
        const { promise, resolve } = Promise.withResolvers<void>()
        wake = resolve
        const ending = new AbortController()
        await Promise.race([promise, this.wait(POLL_MS, AbortSignal.any([signal, ending.signal]))])
        ending.abort()
        if (changed.size === 0 && (await this.findNewest(tenantId)) !== newest) isAnyChanged = true
      }
    } finally {
      this.listeners.off(tenantId, onChange)
    }
  }

  /** Resolves after the time, or when the signal aborts. */
  private wait(milliseconds: number, signal: AbortSignal): Promise<void> {
    return this.deps.clock.wait(milliseconds, signal).catch(() => {})
  }

  /** Identifies the last activity in the tenant's conversations. */
  private async findNewest(tenantId: string): Promise<string> {
    const opened = await this.deps.storage.find()
    const newest = await opened?.read
      .selectFrom('conversations')
      .select(['id', 'revision'])
      .where('tenant', '=', tenantId)
      .orderBy('last_at', 'desc')
      .orderBy('position', 'desc')
      .limit(1)
      .executeTakeFirst()
    return `${newest?.id} ${newest?.revision}`
  }
}
