/** Records in the audit log who reads conversations, and how many have expired. */
import { LRUCache } from 'lru-cache'
import { type Actor, type AuditDeps, findLastEvent, recordAudit } from '../../identity/audit.ts'
import { type Clock, unixSeconds } from '../../lib/clock.ts'

const READ_AGAIN_SECONDS = 3_600
/** Number of reads that a process remembers; others are looked up in the audit log. */
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

/** Records that an actor has read a conversation, at most once per hour for each actor and conversation. */
export class ReadAudit {
  /** The last recorded read and its time (Unix seconds), by actor and conversation. */
  private readonly known = new LRUCache<string, { readonly at: number; readonly recording: Promise<void> }>({
    max: MAX_KNOWN,
  })
  private readonly clock: Clock

  constructor(clock: Clock) {
    this.clock = clock
  }

  /**
   * Records the read, unless the audit log already contains a read of this conversation by this actor from
   * the last hour.
   */
  async record(deps: AuditDeps, actor: Actor, reading: Reading): Promise<void> {
    const key = JSON.stringify([actor.kind, actor.name, reading.conversationId])
    const nowSeconds = unixSeconds(this.clock)
    const known = this.known.get(key)
    if (known !== undefined && known.at > nowSeconds - READ_AGAIN_SECONDS) return known.recording
    const recording = recordUnlessRecent(deps, actor, reading, nowSeconds)
    this.known.set(key, { at: nowSeconds, recording })
    await recording.catch((error) => {
      this.known.delete(key)
      throw error
    })
  }
}

/** Checks the audit log first: another process, or this one before a restart, may have recorded the read. */
async function recordUnlessRecent(
  deps: AuditDeps,
  actor: Actor,
  { tenantId, conversationId, agentId }: Reading,
  nowSeconds: number,
): Promise<void> {
  const last = await findLastEvent(deps, actor, 'conversation.read', conversationId)
  if (last !== undefined && last > nowSeconds - READ_AGAIN_SECONDS) return
  await recordAudit(deps, actor, {
    action: 'conversation.read',
    target: { kind: 'conversation', id: conversationId },
    tenantId,
    details: { agent_id: agentId || null },
  })
}
