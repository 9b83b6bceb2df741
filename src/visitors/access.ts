/** Reads the visitor of a call with an agent key. Rejects expired tokens, and tokens of erased visitors. */
import type { AgentDirectory } from '../agents/cache.ts'
import { isErased } from '../conversations/operator.ts'
import type { ConversationStorage } from '../db/open.ts'
import type { VisitorTokens } from '../identity/visitor-tokens.ts'
import { ServiceError } from '../lib/errors.ts'
import type { GuardedCall } from '../operations/access.ts'
import type { AgentCaller, CallVisitor } from '../operations/operation.ts'
import { identityExpired } from './identity/jwt.ts'

export { KeySets } from './identity/key-sets.ts'
export { resealVisitorSecrets } from './identity/secrets.ts'

interface AccessDeps {
  readonly agents: AgentDirectory
  readonly visitorTokens: VisitorTokens
  readonly conversations: { readonly storage: ConversationStorage }
}

/**
 * Sets the call's visitor. Operations that need a visitor reject a missing or invalid token themselves.
 * @throws ServiceError `identity_expired`, or `visitor_required` for an erased visitor, or without an
 * identity if the agent requires one
 */
export function checkVisitor({ context, auth }: GuardedCall, deps: AccessDeps): Promise<void> | void {
  if (auth === undefined || auth.callers.length === 0 || auth.acceptsAnyVisitor) return
  const { caller, metadata } = context
  if (caller.kind !== 'agent') return
  const token = metadata.headers['x-parley-visitor']
  const agent = deps.agents.find(caller.tenantId, caller.agentId)
  if (token === undefined && !(agent instanceof Promise)) {
    if (agent?.definition.visitors?.identity === 'required') throw identityRequired()
    return
  }
  return check(context, deps, caller)
}

async function check(context: GuardedCall['context'], deps: AccessDeps, caller: AgentCaller): Promise<void> {
  const visitor = findVisitor(deps, caller, context.metadata.headers['x-parley-visitor'])
  const agent = await deps.agents.find(caller.tenantId, caller.agentId)
  const isRequired = agent?.definition.visitors?.identity === 'required'
  if (isRequired && (visitor === undefined || visitor.kind === 'anonymous')) throw identityRequired()
  if (visitor !== undefined && (await isErasedVisitor(deps, visitor.id))) throw visitorRequired()
  context.visitor = visitor
}

/**
 * Returns the visitor of a token; undefined if the token is missing or invalid. @throws ServiceError
 * `identity_expired`
 */
export function findVisitor(
  { visitorTokens }: Pick<AccessDeps, 'visitorTokens'>,
  caller: AgentCaller,
  token: string | readonly string[] | undefined,
): CallVisitor | undefined {
  const found = typeof token === 'string' ? visitorTokens.find(caller, token) : undefined
  if (found === 'expired') throw identityExpired()
  return found
}

export async function isErasedVisitor(
  { conversations }: Pick<AccessDeps, 'conversations'>,
  visitorId: string,
): Promise<boolean> {
  const opened = await conversations.storage.find()
  return opened !== undefined && isErased(opened.read, visitorId)
}

/** The error for a token that is missing, invalid, or belongs to an erased visitor. */
export function visitorRequired(): ServiceError {
  return new ServiceError(
    'insufficient_permissions',
    'X-Parley-Visitor: must be a valid visitor token; get one with visitor.session',
    { code: 'visitor_required' },
  )
}

export function identityRequired(): ServiceError {
  return new ServiceError(
    'insufficient_permissions',
    'X-Parley-Visitor: must be the token of an identified visitor, because this agent requires an identity',
    { code: 'visitor_required' },
  )
}
