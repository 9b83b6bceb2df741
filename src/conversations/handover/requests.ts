/** Changes who answers a conversation on behalf of its owner. */
import { type AuditEvent, actorOf, recordAudit } from '../../identity/audit.ts'
import type { CallContext, ParentCaller } from '../../operations/operation.ts'
import { findOwn, getConversation, type OperationsDependencies, toOwnedItem } from '../requests.ts'
import type { ConversationRow } from '../store.ts'
import { wrongMode } from './errors.ts'
import type { Person, Place } from './handover.ts'
import type { ConversationMode, StoredMessage } from './schema.ts'

type Context = CallContext<ParentCaller, OperationsDependencies>

export async function requestPerson(
  context: Context,
  input: { readonly conversation_id: string; readonly reason?: string | undefined },
): Promise<ConversationMode> {
  const row = await context.deps.conversations.handover.request(placeOf(context, input), input.reason)
  return render(context, row)
}

export async function takeOver(
  context: Context,
  input: { readonly conversation_id: string; readonly name?: string | undefined },
): Promise<ConversationMode> {
  const row = await findUsable(context, input.conversation_id, ['model', 'waiting'])
  await audit(context, 'conversation.take_over', row)
  const person = personOf(context, input.name)
  return render(context, await context.deps.conversations.handover.takeOver(placeOf(context, input), person))
}

export async function handBack(
  context: Context,
  input: { readonly conversation_id: string },
): Promise<ConversationMode> {
  const row = await findUsable(context, input.conversation_id, ['person'])
  await audit(context, 'conversation.hand_back', row)
  return render(context, await context.deps.conversations.handover.handBack(placeOf(context, input)))
}

export async function sendMessage(
  context: Context,
  input: {
    readonly conversation_id: string
    readonly text: string
    readonly client_id: string
    readonly name?: string | undefined
    readonly if_mode?: 'person' | undefined
  },
): Promise<StoredMessage> {
  const { conversation: row } = await findOwn(context.deps, context.caller.tenantId, input.conversation_id)
  const mayTakeOver = input.if_mode === undefined
  if (row.mode !== 'person' && mayTakeOver) await audit(context, 'conversation.take_over', row)
  const { conversation, item } = await context.deps.conversations.handover.answer(
    placeOf(context, input),
    personOf(context, input.name),
    { text: input.text, clientId: input.client_id, mayTakeOver },
  )
  return { conversation_id: conversation.id, mode: conversation.mode, turn: null, item: toOwnedItem(item) }
}

function placeOf({ caller }: Context, input: { readonly conversation_id: string }): Place {
  return { tenantId: caller.tenantId, conversationId: input.conversation_id }
}

/** Returns the person who answers with the caller's key. */
export function personOf({ caller }: { readonly caller: ParentCaller }, name: string | undefined): Person {
  const { user, tenantId } = caller
  if (user === undefined) return { assignee: name ?? tenantId, name: name ?? null }
  return { assignee: user.email, name: name ?? user.email.replace(/@.*$/, '') }
}

/** Checks the mode before the audit log records the change. @throws ServiceError */
async function findUsable(
  { deps, caller }: Context,
  id: string,
  modes: readonly ConversationRow['mode'][],
): Promise<ConversationRow> {
  const { conversation } = await findOwn(deps, caller.tenantId, id)
  if (!modes.includes(conversation.mode)) throw wrongMode(conversation)
  return conversation
}

/**
 * Records the change before it happens, because with SQLite the audit log is in another file and cannot share
 * a transaction with it.
 */
async function audit(context: Context, action: AuditEvent['action'], row: ConversationRow): Promise<void> {
  await recordAudit(context.deps, actorOf(context), {
    action,
    target: { kind: 'conversation', id: row.id },
    tenantId: row.tenant,
    details: { agent_id: row.agent_id || null },
  })
}

async function render(
  { deps, caller }: Context,
  { id, mode, assignee }: ConversationRow,
): Promise<ConversationMode> {
  return { ...(await getConversation(deps, caller.tenantId, id)), mode, assignee }
}
