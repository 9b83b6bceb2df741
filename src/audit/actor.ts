/** Who did something that is written down, and from where. */
import type { ParentCaller, TokenCaller } from '../keys/schema.ts'
import type { Arrival, CallContext } from '../rpc/context.ts'

/** Who acts. */
export interface Actor {
  readonly kind: 'parent_key' | 'user' | 'token' | 'command' | 'service'
  /** The key's public id, the user's email, the artifact a token is for, or the operating system's user a command ran as. */
  readonly name: string
  /** Null outside a call. */
  readonly requestId: string | null
  readonly clientAddress: string | null
}

/** The service itself, at its start. */
export const serviceActor: Actor = { kind: 'service', name: 'service', requestId: null, clientAddress: null }

/** Whoever makes the call: a user who works in the console, or else the key or token that was presented. */
export function actorOf({
  caller,
  arrival,
}: Pick<CallContext<ParentCaller | TokenCaller>, 'caller' | 'arrival'>): Actor {
  const { requestId, clientAddress } = arrival
  if (caller.kind === 'token') return { kind: 'token', name: caller.artifactId, requestId, clientAddress }
  if (caller.user !== undefined) return userActor(caller.user.email, arrival)
  return { kind: 'parent_key', name: caller.tenantId, requestId, clientAddress }
}

/** What an act can be traced to. */
export type Trace = Pick<Arrival, 'requestId' | 'clientAddress'>

/** A user, also one whose first call is not let in yet. */
export function userActor(email: string, { requestId, clientAddress }: Trace): Actor {
  return { kind: 'user', name: email, requestId, clientAddress }
}
