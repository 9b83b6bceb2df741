/** Lets visitors and owners follow conversations, a limited number at a time. */
import {
  type ChangedConversations,
  type FeedEvent as ConversationEvent,
  type Cursor,
  findLastBeforeNext,
  findLastItem,
  findLastPosition,
  followConversation,
  followWaiting,
  parseCursor,
  personOf,
  recordRead,
  renderCursor,
  type Waiting,
} from '../conversations/visible.ts'
import { addressGroup, lowerLimit } from '../operations/access.ts'
import {
  type AgentCaller,
  type CallContext,
  type Caller,
  EventStream,
  type ParentCaller,
} from '../operations/operation.ts'
import type { StreamQuota } from '../replicas/limits.ts'
import type { Dependencies } from './dependencies.ts'
import type { FeedEvent } from './schema.ts'
import { findOwnConversation, findShowsNames } from './visitors.ts'

type Context = CallContext<Caller, Dependencies>

interface FollowQuery {
  readonly conversation: string
  readonly cursor?: string | undefined
}

/** Follows one of the calling visitor's conversations. @throws ServiceError */
export async function followOwn(
  context: CallContext<AgentCaller, Dependencies>,
  query: FollowQuery,
  client: AbortSignal,
): Promise<AsyncGenerator<FeedEvent, void, void>> {
  await findOwnConversation(context, query.conversation)
  const visitor = { showsNames: await findShowsNames(context) }
  // A visitor's feed contains only items that visitors may see.
  const events = (await follow(context, query, client, visitor)) as AsyncGenerator<FeedEvent, void, void>
  return counted(context, events)
}

/** Follows one of the tenant's conversations. @throws ServiceError */
export async function followOwned(
  context: CallContext<ParentCaller, Dependencies>,
  query: FollowQuery,
  client: AbortSignal,
): Promise<AsyncGenerator<ConversationEvent, void, void>> {
  await recordRead(context, query.conversation)
  return counted(context, await follow(context, query, client, undefined))
}

/** Returns the cursor after all stored items, from which a running turn is repeated. @throws ServiceError */
export async function findCursor(
  context: CallContext<ParentCaller, Dependencies>,
  conversationId: string,
): Promise<string> {
  await recordRead(context, conversationId)
  const now = await findNow(context, conversationId)
  const isRunning = now.next !== 'end'
  return renderCursor(isRunning ? { ...now, next: 0 } : now)
}

/** Streams a tenant's or a visitor's conversation as server-sent events. @throws ServiceError */
export async function streamEvents(
  context: Context,
  query: FollowQuery,
  client: AbortSignal,
): Promise<EventStream> {
  const visitor = await findVisitor(context, query.conversation)
  const events = encode(await follow(context, query, client, visitor))
  return new EventStream(counted(context, events), (failure) =>
    Buffer.from(
      `event: error\ndata: ${JSON.stringify({ code: failure.code, message: failure.message })}\n\n`,
    ),
  )
}

/** Streams the tenant's conversations that wait for a person or for the caller. @throws ServiceError */
export async function streamWaiting(
  context: CallContext<ParentCaller, Dependencies>,
  client: AbortSignal,
): Promise<AsyncGenerator<Waiting, void, void>> {
  const { conversations, followers } = context.deps
  const signal = AbortSignal.any([client, followers.signal])
  const { tenantId } = context.caller
  const { assignee } = personOf(context, undefined)
  return counted(context, followWaiting(conversations, { tenantId, assignee }, signal))
}

/** Streams which of the tenant's conversations change. @throws ServiceError */
export async function streamChanges(
  context: CallContext<ParentCaller, Dependencies>,
  client: AbortSignal,
): Promise<AsyncGenerator<ChangedConversations, void, void>> {
  const { conversations, followers } = context.deps
  const signal = AbortSignal.any([client, followers.signal])
  return counted(context, conversations.changes.follow(context.caller.tenantId, signal))
}

/**
 * Returns undefined for an owner, and records that the owner reads the conversation. @throws ServiceError if
 * the caller may not read the conversation
 */
async function findVisitor(context: Context, id: string) {
  if (context.caller.kind === 'parent') {
    await recordRead(context as CallContext<ParentCaller, Dependencies>, id)
    return undefined
  }
  const own = context as CallContext<AgentCaller, Dependencies>
  await findOwnConversation(own, id)
  return { showsNames: await findShowsNames(own) }
}

async function follow(
  context: Context,
  { conversation: conversationId, cursor }: FollowQuery,
  client: AbortSignal,
  visitor: { readonly showsNames: boolean } | undefined,
): Promise<AsyncGenerator<ConversationEvent, void, void>> {
  const { conversations, followers } = context.deps
  const from = cursor === undefined ? await findNow(context, conversationId) : parseCursor(cursor)
  const signal = AbortSignal.any([client, followers.signal])
  return followConversation({ conversations, conversationId, from, visitor, signal })
}

/** Counts a feed when its reading starts, because a feed that is never read would never be released. */
async function* counted<Piece>(
  context: Context,
  pieces: AsyncGenerator<Piece, void, void>,
): AsyncGenerator<Piece, void, void> {
  const release = await context.deps.followers.acquire(quotasOf(context))
  try {
    yield* pieces
  } finally {
    await release()
  }
}

/** Also limits agent keys per client address, because these keys are public. */
function quotasOf({ deps, caller, metadata }: Context): StreamQuota[] {
  const { followers } = deps.config.conversations
  if (caller.kind === 'parent') {
    const limit = lowerLimit(followers.parent, caller.ownLimits?.streams)
    return [{ key: `followers:parent:${caller.tenantId}`, limit }]
  }
  const key = `followers:agent:${caller.agentId}`
  return [
    { key, limit: followers.agent },
    { key: `${key}:${addressGroup(metadata.clientAddress)}`, limit: followers.address },
  ]
}

/** Returns the position after all events so far, including those of a running turn. */
async function findNow({ deps }: Context, conversationId: string): Promise<Cursor> {
  const { reader, storage } = deps.conversations
  const { read } = await storage.open()
  const turn = await reader.findLastTurn(conversationId)
  if (turn === undefined) return { position: await findLastItem(read, conversationId), turn: 0, next: 'end' }
  const isRunning = turn.status === 'in_progress'
  const position = isRunning
    ? await findLastPosition(read, turn.id, 'input')
    : await findLastBeforeNext(read, turn)
  const next = isRunning ? (await deps.conversations.readSoFar(turn)).length : 'end'
  return { position, turn: turn.number, next }
}

/** Begins with a comment, so that the client receives the headers before the first event. */
async function* encode(
  events: AsyncGenerator<ConversationEvent, void, void>,
): AsyncGenerator<Uint8Array, void, void> {
  yield Buffer.from(': connected\n\n')
  for await (const { id, event, data } of events)
    yield Buffer.from(`id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
}
