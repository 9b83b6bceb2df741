/** Finds identified visitors, and moves the conversations of anonymous visitors to them. */
import type { ConversationDb, ConversationStorage } from '../../db/open.ts'
import type { IdentifiedVisitor, VisitorTokens } from '../../identity/visitor-tokens.ts'
import { ServiceError } from '../../lib/errors.ts'
import type { CallContext, Caller, CallVisitor } from '../../operations/operation.ts'
import { findErasureOf, isErased } from '../retention/erasure.ts'
import { recordVisitor } from './rows.ts'

/** The issuer of identities that a parent key states. */
const PARENT_KEY_ISSUER = 'parent_key'
const MAX_SUBJECT = 255
const RETRY_AFTER_SECONDS = 2

/** The columns that identify a visitor of a tenant. */
export type Identity = Pick<CallVisitor, 'kind' | 'issuer' | 'subject'>

export interface IdentityDeps {
  readonly conversations: { readonly storage: ConversationStorage }
  readonly visitorTokens: Pick<VisitorTokens, 'deriveId'>
}

/**
 * Returns the id of a visitor, who may not be stored yet. After an erasure, the same identity gets another
 * id.
 * @throws ServiceError `visitor_being_erased`
 */
export async function findVisitorId(
  { conversations, visitorTokens }: IdentityDeps,
  tenantId: string,
  identity: Identity,
): Promise<string> {
  const opened = await conversations.storage.find()
  if (opened === undefined) return visitorTokens.deriveId(tenantId, identity, 0)
  const stored = await findStoredId(opened.read, tenantId, identity)
  for (let generation = 0; ; generation++) {
    const id = stored ?? visitorTokens.deriveId(tenantId, identity, generation)
    const erasure = await findErasureOf(opened.read, tenantId, id)
    if (erasure === undefined) return id
    if (erasure.status === 'running' || stored !== undefined) throw beingErased()
  }
}

async function findStoredId(
  db: ConversationDb,
  tenantId: string,
  { kind, issuer, subject }: Identity,
): Promise<string | undefined> {
  const row = await db
    .selectFrom('visitors')
    .select('id')
    .where('tenant', '=', tenantId)
    .where('kind', '=', kind)
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .executeTakeFirst()
  return row?.id
}

function beingErased(): ServiceError {
  return new ServiceError('conflict', 'The visitor is being erased; try again later.', {
    code: 'visitor_being_erased',
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  })
}

export interface NamedIdentity {
  readonly subject: string
  readonly name?: string | undefined
  readonly email?: string | undefined
}

/** Returns a visitor whom a parent key names. @throws ServiceError `visitor_being_erased` */
export async function nameVisitor(
  deps: IdentityDeps,
  tenantId: string,
  { subject, name = '', email = '' }: NamedIdentity,
): Promise<IdentifiedVisitor> {
  const identity = { kind: 'named', issuer: PARENT_KEY_ISSUER, subject } as const
  const id = await findVisitorId(deps, tenantId, identity)
  return { ...identity, id, name: name || null, email: email || null, claims: {} }
}

interface NamingFields {
  readonly safety_identifier?: unknown
  readonly user?: unknown
}

/**
 * Returns the visitor of a turn: with an agent key, the one whose token the request contains; with a parent
 * key, the one in `safety_identifier` or `user`. Values that are too long or contain control characters name
 * no visitor.
 * @throws ServiceError `visitor_being_erased`
 */
export async function findTurnVisitor(
  { deps, caller, visitor }: CallContext<Caller, IdentityDeps>,
  { safety_identifier: identifier, user }: NamingFields,
): Promise<CallVisitor | undefined> {
  if (caller.kind === 'agent') return visitor
  const subject = identifier ?? user
  if (typeof subject !== 'string' || subject === '' || subject.length > MAX_SUBJECT) return undefined
  if (!subject.isWellFormed() || /\p{Cc}/u.test(subject)) return undefined
  return nameVisitor(deps, caller.tenantId, { subject })
}

/** Returns a function that finds the visitor of a turn on its first call, and remembers the result. */
export function memoizeTurnVisitor(
  context: CallContext<Caller, IdentityDeps>,
  fields: NamingFields,
): () => Promise<CallVisitor | undefined> {
  let found: Promise<CallVisitor | undefined> | undefined
  return () => {
    found ??= findTurnVisitor(context, fields)
    return found
  }
}

interface Move {
  readonly tenantId: string
  readonly agentId: string
  /** The anonymous visitor's id. */
  readonly from: string
  readonly to: CallVisitor
  readonly nowSeconds: number
}

/** Moves an anonymous visitor's conversations with an agent to another visitor. */
export async function moveToVisitor(
  trx: ConversationDb,
  { tenantId, agentId, from, to, nowSeconds }: Move,
): Promise<void> {
  // The erasure deletes the conversations instead.
  if (await isErased(trx, from)) return
  const { numUpdatedRows } = await trx
    .updateTable('conversations')
    .set({ visitor_id: to.id })
    .where('visitor_id', '=', from)
    .where('tenant', '=', tenantId)
    .where('agent_id', '=', agentId)
    .executeTakeFirst()
  if (numUpdatedRows === 0n) return
  await trx
    .updateTable('turns')
    .set({ visitor_id: to.id })
    .where('visitor_id', '=', from)
    .where('tenant', '=', tenantId)
    .where('agent_id', '=', agentId)
    .execute()
  await trx
    .deleteFrom('visitors')
    .where('id', '=', from)
    .where('tenant', '=', tenantId)
    .where('kind', '=', 'anonymous')
    .execute()
  await recordVisitor(trx, tenantId, to, nowSeconds)
}
