/** Who did something that is written down, and from where. */
import type { ParentCaller } from '../keys/schema.ts'
import type { CallContext } from '../rpc/context.ts'

/** Who acts. */
export interface Actor {
  readonly kind: 'parent_key' | 'user' | 'command' | 'service'
  /** The key's public id, the user's email, or the operating system's user a command ran as. */
  readonly name: string
  /** Null outside a call. */
  readonly requestId: string | null
  readonly clientAddress: string | null
}

/** The service itself, at its start. */
export const serviceActor: Actor = { kind: 'service', name: 'service', requestId: null, clientAddress: null }

/** Whoever makes the call. */
export function actorOf({ caller, arrival }: CallContext<ParentCaller>): Actor {
  const { requestId, clientAddress } = arrival
  return { kind: 'parent_key', name: caller.tenantId, requestId, clientAddress }
}
