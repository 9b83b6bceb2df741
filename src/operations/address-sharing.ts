/**
 * Detects a client address that many keys or visitors share, usually because a proxy is missing from
 * PARLEY_TRUSTED_PROXIES.
 */
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Clock } from '../lib/clock.ts'

/**
 * An address is considered shared when this many agent keys, or visitors behind an untrusted proxy, use it.
 */
const MANY = 10
const WINDOW_MS = 3_600_000
const MAX_ADDRESSES = 1_000

interface Use {
  readonly sinceMs: number
  readonly agents: Set<string>
  readonly visitors: Set<string>
}

/** Counts the agent keys and visitors that use each address within an hour. */
export class AddressSharing {
  private readonly uses = new LRUCache<string, Use>({ max: MAX_ADDRESSES })
  private readonly clock: Pick<Clock, 'monotonic'>
  private readonly log: Logger
  private sharedAtMs: number | undefined

  constructor({ clock, log }: { readonly clock: Pick<Clock, 'monotonic'>; readonly log: Logger }) {
    this.clock = clock
    this.log = log
  }

  /** Returns true if an address was shared within the last hour. */
  get isShared(): boolean {
    return this.sharedAtMs !== undefined && this.clock.monotonic() - this.sharedAtMs < WINDOW_MS
  }

  /**
   * Records a call with an agent key. `forwardedFor` is the address in a header that is ignored because the
   * peer is not a trusted proxy.
   */
  record(address: string, agentId: string, forwardedFor: string | undefined): void {
    const { agents, visitors } = this.find(address)
    if (agents.size < MANY) agents.add(agentId)
    if (forwardedFor !== undefined && visitors.size < MANY) visitors.add(forwardedFor.slice(-64))
    if (agents.size < MANY && visitors.size < MANY) return
    const wasShared = this.isShared
    this.sharedAtMs = this.clock.monotonic()
    if (wasShared) return
    // Omits the addresses, because they are personal data.
    this.log.warn(
      { agents: agents.size, forwarded: visitors.size },
      'many clients share one address and its limits; if they connect through a proxy, add it to PARLEY_TRUSTED_PROXIES, otherwise raise PARLEY_MAX_STREAMS_ADDRESS',
    )
  }

  private find(address: string): Use {
    const known = this.uses.get(address)
    const nowMs = this.clock.monotonic()
    if (known !== undefined && nowMs - known.sinceMs < WINDOW_MS) return known
    const use = { sinceMs: nowMs, agents: new Set<string>(), visitors: new Set<string>() }
    this.uses.set(address, use)
    return use
  }
}
