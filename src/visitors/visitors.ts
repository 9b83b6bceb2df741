/** Identifies visitors, and reads and deletes their conversations. */
import { type Agent, getOwnAgent } from '../agents/cache.ts'
import { defaultHandover, toSeconds } from '../agents/definition-parts.ts'
import { findStoring, type Storing } from '../chat/stored-chat.ts'
import {
  type ConversationRow,
  findLastBeforeNext,
  findLastPosition,
  findVisitorConversation,
  listModeChanges,
  listNewestVisible,
  listOwnRatings,
  listVersions,
  listVisitorConversations,
  renderCursor,
  type TurnRow,
  toShownTurn,
  toVisitorItem,
  toVisitorMode,
  type VisitorKey,
} from '../conversations/visible.ts'
import type { ConversationDb } from '../db/open.ts'
import { recordAudit } from '../identity/audit.ts'
import type { MintedToken } from '../identity/visitor-tokens.ts'
import { unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { readPage } from '../lib/page.ts'
import type { AgentCaller, CallContext, CallVisitor } from '../operations/operation.ts'
import { findVisitor, identityRequired, isErasedVisitor, visitorRequired } from './access.ts'
import type { Dependencies } from './dependencies.ts'
import { exchangeIdentity } from './identity/sessions.ts'
import type { OpenResult, SessionResult, VisitorConversation } from './schema.ts'

export type Context = CallContext<AgentCaller, Dependencies>

const OPENED_ITEMS = 500

/**
 * Exchanges an identity for a token, renews the token of an anonymous visitor, or creates a token for a new
 * anonymous visitor. Returns the token of an identified visitor unchanged.
 * @throws ServiceError `identity_invalid`, `identity_expired`, `visitor_required`, `conversations_off`
 */
export async function beginSession(
  context: Context,
  identityToken: string | undefined,
): Promise<SessionResult> {
  const { deps, caller, metadata } = context
  const agent = await getOwnAgent(deps, caller)
  const token = metadata.headers['x-parley-visitor']
  if (identityToken === undefined) return continueSession(context, agent, token)
  // Ignores an expired token, because the request contains an identity.
  const found = typeof token === 'string' ? deps.visitorTokens.find(caller, token) : undefined
  const present = found === 'expired' ? undefined : found
  const { visitor, token: minted } = await exchangeIdentity(context, { agent, identityToken, present })
  return renderSession(context, agent, visitor, minted)
}

async function continueSession(
  context: Context,
  agent: Agent,
  token: string | string[] | undefined,
): Promise<SessionResult> {
  const { deps, caller } = context
  const known = findVisitor(deps, caller, token)
  const isKnown = known !== undefined && !(await isErasedVisitor(deps, known.id))
  if (isKnown && known.kind !== 'anonymous') {
    const expiresAt = Number(String(token).split('.')[1])
    return renderSession(context, agent, known, { token: String(token), expiresAt })
  }
  if (agent.definition.visitors?.identity === 'required') throw identityRequired()
  await requireStoring(context)
  const visitorId = isKnown ? known.id : deps.visitorTokens.newVisitorId()
  const minted = deps.visitorTokens.mint(caller.agentId, visitorId)
  return renderSession(context, agent, { id: visitorId, kind: 'anonymous' }, minted)
}

async function renderSession(
  { deps, caller }: Context,
  { definition }: Agent,
  { id, kind }: Pick<CallVisitor, 'id' | 'kind'>,
  { token, expiresAt }: MintedToken,
): Promise<SessionResult> {
  const opened = await deps.conversations.storage.find()
  const visitor = { ...keyOf(caller), visitorId: id }
  const [newest] =
    opened === undefined ? [] : await listVisitorConversations(opened.read, visitor, { limit: 1 })
  const resumeSeconds = toSeconds(definition.conversations?.visitor.resume ?? '0s')
  const isRecent = newest !== undefined && newest.last_at + resumeSeconds >= unixSeconds(deps.clock)
  return {
    token,
    expires_at: expiresAt,
    visitor: { id, kind },
    conversation: isRecent ? renderConversation(newest) : null,
  }
}

/** Lists the visitor's conversations, latest activity first. @throws ServiceError */
export async function listOwn(
  context: Context,
  query: { readonly limit: number; readonly after?: string | undefined },
): Promise<{ data: VisitorConversation[]; has_more: boolean }> {
  const page = await readOwnPage(context, requireVisitor(context), query)
  return { data: page.rows.map(renderConversation), has_more: page.hasMore }
}

/** @throws ServiceError `not_allowed` if the agent's visitors may not list conversations */
export async function readOwnPage(
  context: Context,
  visitor: VisitorKey,
  query: { readonly limit: number; readonly after?: string | undefined },
) {
  await assertAllowed(context, 'list')
  const opened = await context.deps.conversations.storage.find()
  return readPage(query, {
    find: async (id) => opened && findVisitorConversation(opened.read, visitor, id),
    list: async (limit, after) =>
      opened === undefined ? [] : listVisitorConversations(opened.read, visitor, { limit, after }),
  })
}

/**
 * Returns a conversation as its visitor sees it, with the position from which to follow it. @throws
 * ServiceError
 */
export async function openConversation(context: Context, id: string): Promise<OpenResult> {
  const { read, conversation } = await findOwnConversation(context, id)
  // Reads the turn before the items: in the other order, items stored in between could be missing from both
  // the items and the feed.
  const turn = await context.deps.conversations.reader.findLastTurn(id)
  const current = turn?.replaced == null ? turn : await context.deps.conversations.reader.findCurrentTurn(id)
  const all = await listNewestVisible(read, id, OPENED_ITEMS)
  const isRunning = turn?.status === 'in_progress'
  const upTo = await findLastStored(read, conversation, turn, isRunning)
  const shown = all.filter(({ position }) => position <= upTo)
  const first = all.length < OPENED_ITEMS ? 0 : (all[0]?.position ?? 0)
  const modes = await listModeChanges(read, id, { from: first, upTo })
  const showsNames = await findShowsNames(context)
  return {
    conversation: renderConversation(conversation),
    items: shown.map((item) => toVisitorItem(item, showsNames)),
    modes: modes.map((change) => ({
      ...toVisitorMode(change.entry, showsNames),
      after: shown.findLast(({ position }) => position < change.position)?.id ?? null,
    })),
    ratings: await listOwnRatings(
      read,
      shown.flatMap(({ turn_id: turnId }) => turnId ?? []),
    ),
    versions: await listVersions(read, id),
    turn: current === undefined ? null : toShownTurn(current),
    cursor: renderCursor({ position: upTo, turn: turn?.number ?? 0, next: isRunning ? 0 : 'end' }),
  }
}

/** Cancels the running turns of a conversation, then deletes it. @throws ServiceError */
export async function deleteOwn(context: Context, id: string): Promise<void> {
  const { conversation } = await findOwnConversation(context, id)
  await assertAllowed(context, 'delete')
  const { deps, metadata } = context
  const { requestId, clientAddress } = metadata
  const actor = { kind: 'token', name: conversation.visitor_id ?? '', requestId, clientAddress } as const
  // Records the deletion first: with SQLite, the audit log is in another file, so no transaction can include
  // both.
  await recordAudit(deps, actor, {
    action: 'conversation.delete',
    target: { kind: 'conversation', id },
    tenantId: conversation.tenant,
    details: { agent_id: conversation.agent_id, turns: conversation.turns },
  })
  await deps.conversations.deleteConversation(id, conversation.tenant)
}

/** Returns the agent if it stores conversations. @throws ServiceError `conversations_off` */
export async function requireStoring(context: Context): Promise<{ agent: Agent; storing: Storing }> {
  const agent = await getOwnAgent(context.deps, context.caller)
  const { id: agentId } = agent.row
  const storing = findStoring(context, { agentId, conversations: agent.definition.conversations }, undefined)
  if (storing !== undefined) return { agent, storing }
  throw new ServiceError('invalid_value', 'This agent stores no conversations.', {
    code: 'conversations_off',
  })
}

/**
 * Returns the visitor of the token in the `X-Parley-Visitor` header. @throws ServiceError `visitor_required`
 */
export function requireCallVisitor({ visitor }: Context): CallVisitor {
  if (visitor !== undefined) return visitor
  throw visitorRequired()
}

/** Returns the key of the calling visitor's conversations. @throws ServiceError `visitor_required` */
export function requireVisitor(context: Context): VisitorKey {
  return { ...keyOf(context.caller), visitorId: requireCallVisitor(context).id }
}

function keyOf({ tenantId, agentId }: AgentCaller) {
  return { tenantId, agentId }
}

/** Returns one of the calling visitor's conversations. @throws ServiceError */
export async function findOwnConversation(
  context: Context,
  id: string,
): Promise<{ read: ConversationDb; conversation: ConversationRow }> {
  const visitor = requireVisitor(context)
  const opened = await context.deps.conversations.storage.find()
  const conversation = opened && (await findVisitorConversation(opened.read, visitor, id))
  if (opened === undefined || conversation === undefined)
    throw new ServiceError('not_found', `Conversation with id '${id}' not found.`, { param: 'conversation' })
  return { read: opened.read, conversation }
}

/** Returns one of the calling visitor's turns. @throws ServiceError */
export async function findOwnTurn(context: Context, id: string): Promise<TurnRow> {
  const { tenantId, agentId, visitorId } = requireVisitor(context)
  const turn = await context.deps.conversations.reader.findTurn(tenantId, 'id', id)
  if (turn?.visitor_id === visitorId && turn.agent_id === agentId) return turn
  throw new ServiceError('not_found', `Turn with id '${id}' not found.`, { param: 'turn' })
}

/** Returns whether visitors see the names of the people who answer. */
export async function findShowsNames({ deps, caller }: Context): Promise<boolean> {
  const { definition } = await getOwnAgent(deps, caller)
  return (definition.conversations?.handover ?? defaultHandover).showName
}

/** @throws ServiceError `not_allowed` */
export async function assertAllowed(context: Context, what: 'list' | 'delete' | 'rate'): Promise<void> {
  const { definition } = await getOwnAgent(context.deps, context.caller)
  if (definition.conversations?.visitor[what] !== false) return
  const object = what === 'rate' ? 'answers' : 'conversations'
  throw new ServiceError('insufficient_permissions', `This agent's visitors may not ${what} ${object}.`, {
    code: 'not_allowed',
  })
}

export function renderConversation(row: ConversationRow): VisitorConversation {
  const { id, title, last_at, created_at, turns, mode } = row
  return { id, title, last_at, created_at, turns, mode }
}

/**
 * Returns the position up to which a reader already has all items: the last item before the next turn, or
 * before the output of a running turn.
 */
async function findLastStored(
  read: ConversationDb,
  conversation: ConversationRow,
  turn: TurnRow | undefined,
  isRunning: boolean,
): Promise<number> {
  if (turn === undefined) return conversation.items
  if (!isRunning) return findLastBeforeNext(read, turn)
  return (await findLastPosition(read, turn.id, 'input')) || conversation.items
}
