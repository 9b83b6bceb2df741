/** Records in the audit log who reads conversations, and how many have expired. */
import { LRUCache } from 'lru-cache'
import { type Actor, type AuditDeps, findLastEvent, recordAudit } from '../../identity/audit.ts'
import { type Clock, unixSeconds } from '../../lib/clock.ts'

const READ_AGAIN_SECONDS = 3_600
/** Number of readers and conversations that a process remembers; others are looked up in the audit log. */
const MAX_KNOWN = 10_000

/** Records the expired conversations of a maintenance run, one event for each tenant. */
export async function recordExpiry(
  deps: AuditDeps,
  actor: Actor,
  counts: ReadonlyMap<string, number>,
): Promise<void> {
  for (const [tenantId, conversations] of counts)
    await recordAudit(deps, actor, {
      action: 'conversation.expire',
      target: { kind: 'key', id: tenantId },
      tenantId,
      details: { conversations },
    })
}

interface Reading {
  readonly tenantId: string
  readonly conversationId: string
  readonly agentId: string
}

/** Records that an actor reads a conversation, once per hour for each actor and conversation. */
export class ReadAudit {
  /** The time of the last event (Unix seconds) by actor and conversation. */
  private readonly known = new LRUCache<string, number>({ max: MAX_KNOWN })
  private readonly clock: Clock

  constructor(clock: Clock) {
    this.clock = clock
  }

  async record(deps: AuditDeps, actor: Actor, { tenantId, conversationId, agentId }: Reading): Promise<void> {
    const key = JSON.stringify([actor.kind, actor.name, conversationId])
    const nowSeconds = unixSeconds(this.clock)
    const isRecent = (at: number | undefined) => at !== undefined && at > nowSeconds - READ_AGAIN_SECONDS
    if (isRecent(this.known.get(key))) return
    // Another process may have recorded it, or this one before its last start.
    const last = await findLastEvent(deps, actor, 'conversation.read', conversationId)
    this.known.set(key, isRecent(last) ? (last as number) : nowSeconds)
    if (isRecent(last)) return
    await recordAudit(deps, actor, {
      action: 'conversation.read',
      target: { kind: 'conversation', id: conversationId },
      tenantId,
      details: { agent_id: agentId || null },
    }).catch((error) => {
      this.known.delete(key)
      throw error
    })
  }
}
