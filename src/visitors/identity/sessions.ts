/** Exchanges identities of visitors for tokens. */
import type { Agent } from '../../agents/cache.ts'
import type { AgentVisitors } from '../../agents/visitor-rules.ts'
import { findVisitorId, moveToVisitor, type NamedIdentity, nameVisitor } from '../../conversations/visible.ts'
import type { IdentifiedVisitor, MintedToken } from '../../identity/visitor-tokens.ts'
import { unixSeconds } from '../../lib/clock.ts'
import type { AgentCaller, CallContext, CallVisitor } from '../../operations/operation.ts'
import { isErasedVisitor } from '../access.ts'
import type { Dependencies } from '../dependencies.ts'
import { identityInvalid, verifyIdentity } from './jwt.ts'
import { openVisitorSecrets } from './secrets.ts'

interface Exchange {
  readonly agent: Agent
  readonly identityToken: string
  /** The visitor whose token the same request contains. */
  readonly present: CallVisitor | undefined
}

/**
 * Verifies an identity, and returns the visitor with a token. If `present` is an anonymous visitor, moves
 * that visitor's conversations and uploads to the identified visitor.
 * @throws ServiceError `identity_invalid`, `identity_expired`, `visitor_being_erased`
 */
export async function exchangeIdentity(
  { deps, caller }: CallContext<AgentCaller, Dependencies>,
  { agent, identityToken, present }: Exchange,
): Promise<{ visitor: IdentifiedVisitor; token: MintedToken }> {
  const { tenantId, agentId } = caller
  const nowSeconds = unixSeconds(deps.clock)
  const stated = await verifyIdentity(
    {
      ...{ agentId, nowSeconds, keySets: deps.keySets },
      rules: rulesOf(agent),
      openSecrets: () => openVisitorSecrets(deps, agentId, nowSeconds),
    },
    identityToken,
  )
  const visitor = { ...stated.visitor, id: await findVisitorId(deps, tenantId, stated.visitor) }
  if (present?.kind === 'anonymous') {
    const opened = await deps.conversations.storage.find()
    const move = { tenantId, agentId, from: present.id, to: visitor, nowSeconds }
    await opened?.write.transaction().execute((trx) => moveToVisitor(trx, move))
    // An erasure deletes the uploads instead.
    if (!(await isErasedVisitor(deps, present.id)))
      await deps.visitorUploads.move({ tenantId, agentId, visitorId: present.id }, visitor.id)
  }
  return { visitor, token: deps.visitorTokens.mintIdentified(caller, visitor, stated.expiresAt) }
}

function rulesOf({ definition: { visitors } }: Agent): AgentVisitors {
  if (visitors !== undefined && visitors.identity !== 'none') return visitors
  throw identityInvalid('this agent accepts no identities; set `visitors.identity` in its definition')
}

/**
 * Creates a token for a visitor whom a parent key names. The token is valid for all agents of the key.
 * @throws ServiceError
 */
export async function createVisitorToken(
  deps: Pick<Dependencies, 'conversations' | 'visitorTokens' | 'clock'>,
  tenantId: string,
  { expires_in: seconds, ...named }: NamedIdentity & { readonly expires_in: number },
): Promise<MintedToken & { readonly visitor: IdentifiedVisitor }> {
  const visitor = await nameVisitor(deps, tenantId, named)
  const expiresAt = unixSeconds(deps.clock) + seconds
  return { ...deps.visitorTokens.mintIdentified({ tenantId }, visitor, expiresAt), visitor }
}
