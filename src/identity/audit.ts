/** Records changes in the append-only audit log. */

import type { Selectable } from 'kysely'
import type { AuditEventTable } from '../db/tables.ts'
import { withoutKeys } from '../lib/api-key.ts'
import { ServiceError } from '../lib/errors.ts'
import { type Order, type Page, type PageQuery, toPage } from '../lib/page.ts'
import type { CallContext, ParentCaller, RequestMetadata, TokenCaller } from '../operations/operation.ts'
import type { Dependencies } from './dependencies.ts'

export const auditActions = [
  'key.create',
  'key.register',
  'key.provision',
  'key.claim',
  'key.update',
  'key.disable',
  'key.enable',
  'key.rotate',
  'key.revoke',
  'agent_key.rotate',
  'agent.create',
  'agent.update',
  'agent.bin',
  'agent.restore',
  'agent.delete',
  'file.delete',
  'artifact.bin',
  'artifact.delete',
  'artifact.restore',
  'conversation.read',
  'conversation.export',
  'conversation.delete',
  'conversation.expire',
  'conversation.take_over',
  'conversation.hand_back',
  'budget.set',
  'budget.create',
  'budget.update',
  'budget.delete',
  'budget.grant',
  'budget.adjust',
  'policy.set',
  'provider.create',
  'provider.update',
  'provider.delete',
  'provider.test',
  'price.set',
  'price.delete',
  'meter.delete',
  'visitor.erase',
  'visitor_secret.rotate',
  'webhook.create',
  'webhook.update',
  'webhook.delete',
  'webhook.rotate',
  'session.offer',
  'session.begin',
] as const

export interface AuditEvent {
  readonly action: (typeof auditActions)[number]
  readonly target: {
    readonly kind:
      | 'key'
      | 'agent'
      | 'file'
      | 'artifact'
      | 'conversation'
      | 'user'
      | 'provider'
      | 'price'
      | 'model'
      | 'webhook'
      | 'visitor'
      | 'budget'
    readonly id: string
  }
  /** Public id of the parent key that is the target or owns it; null if there is no such key. */
  readonly tenantId: string | null
  /** Must not contain secrets. */
  readonly details?: Readonly<Record<string, unknown>>
}

export type AuditDeps = Pick<Dependencies, 'db' | 'random' | 'nextPosition'>

const MICROSECONDS = 1_000_000

/**
 * Records the event in the same transaction as its change (`{ ...deps, db: trx }`), so that neither exists
 * without the other (ADR 0014).
 */
export async function recordAudit(deps: AuditDeps, actor: Actor, event: AuditEvent): Promise<void> {
  const position = deps.nextPosition()
  const row: AuditRow = {
    // Starts with the time, so that ids sort by time. Ends with random digits, because several processes
    // write events.
    id: `${idPrefixOf(position)}${Buffer.from(deps.random(6)).toString('hex')}`,
    // Calculated from the position instead of the clock, so that ids and times have the same order.
    created_at: Math.floor(position / MICROSECONDS),
    actor_kind: actor.kind,
    actor: actor.name,
    action: event.action,
    target_kind: event.target.kind,
    target_id: event.target.id,
    tenant: event.tenantId,
    // Redacts keys, because clients choose request ids and names, which could contain a key.
    request_id: actor.requestId === null ? null : withoutKeys(actor.requestId),
    client_address: actor.clientAddress,
    details: withoutKeys(JSON.stringify(event.details ?? {})),
  }
  await deps.db.insertInto('audit_events').values(row).execute()
}

/** `from` and `to` are Unix seconds, inclusive. */
export interface AuditQuery extends PageQuery {
  readonly action?: AuditEvent['action'] | undefined
  readonly actor?: string | undefined
  readonly target?: string | undefined
  readonly from?: number | undefined
  readonly to?: number | undefined
  readonly order: Order
}

/**
 * Lists a page of events. @throws ServiceError `invalid_value` if `after` is not an event's id.
 */
export async function listAuditEvents(
  { db }: Pick<Dependencies, 'db'>,
  query: AuditQuery,
): Promise<Page<AuditRow>> {
  const { limit, after, order, from, to, action, actor, target } = query
  if (after !== undefined && !auditId.test(after))
    throw new ServiceError(
      'invalid_value',
      `after: must be the id of an event (got '${withoutKeys(after)}')`,
      {
        param: 'after',
      },
    )
  let rows = db
    .selectFrom('audit_events')
    .selectAll()
    .orderBy('id', order)
    .limit(limit + 1)
  if (after !== undefined) rows = rows.where('id', order === 'desc' ? '<' : '>', after)
  if (to !== undefined) rows = rows.where('id', '<', idPrefixOf((to + 1) * MICROSECONDS))
  if (from !== undefined) rows = rows.where('id', '>=', idPrefixOf(from * MICROSECONDS))
  if (action !== undefined) rows = rows.where('action', '=', action)
  if (actor !== undefined) rows = rows.where('actor', '=', actor)
  if (target !== undefined) rows = rows.where('target_id', '=', target)
  return toPage(await rows.execute(), limit)
}

/** Returns each agent version's author; versions older than the audit log have no entry. */
export async function listVersionAuthors(
  { db }: Pick<Dependencies, 'db'>,
  agentId: string,
): Promise<Map<number, string>> {
  const rows = await db
    .selectFrom('audit_events')
    .select(['actor', 'details'])
    .where('target_id', '=', agentId)
    .where('action', 'in', ['agent.create', 'agent.update'])
    .execute()
  return new Map(rows.map(({ actor, details }) => [JSON.parse(details).version, actor]))
}

/** Returns the ids in `targetIds` that have an event with this action. */
export async function listTargetsWith(
  { db }: Pick<Dependencies, 'db'>,
  action: AuditEvent['action'],
  targetIds: readonly string[],
): Promise<Set<string>> {
  if (targetIds.length === 0) return new Set()
  const rows = await db
    .selectFrom('audit_events')
    .select('target_id')
    .distinct()
    .where('action', '=', action)
    .where('target_id', 'in', targetIds)
    .execute()
  return new Set(rows.map(({ target_id: id }) => id))
}

/** Returns the time (Unix seconds) of an actor's last event with this action and target. */
export async function findLastEvent(
  { db }: Pick<Dependencies, 'db'>,
  actor: Pick<Actor, 'kind' | 'name'>,
  action: AuditEvent['action'],
  targetId: string,
): Promise<number | undefined> {
  const row = await db
    .selectFrom('audit_events')
    .select('created_at')
    .where('target_id', '=', targetId)
    .where('action', '=', action)
    .where('actor_kind', '=', actor.kind)
    .where('actor', '=', actor.name)
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row?.created_at
}

const auditId = /^audit-[0-9a-z]{12}[0-9a-f]{12}$/
const POSITION_DIGITS = 12

/** Returns an id prefix that sorts before every event at this position or later. */
function idPrefixOf(position: number): string {
  return `audit-${position.toString(36).padStart(POSITION_DIGITS, '0')}`
}

export interface Actor {
  readonly kind: 'parent_key' | 'user' | 'token' | 'command' | 'service'
  /**
   * The key's public id, the user's email, the token's artifact id, or the system user who ran the command.
   */
  readonly name: string
  /** Null outside of a request. */
  readonly requestId: string | null
  readonly clientAddress: string | null
}

export const serviceActor: Actor = { kind: 'service', name: 'service', requestId: null, clientAddress: null }

/** Returns the user for a call from the console, or the key or token for any other call. */
export function actorOf({
  caller,
  metadata,
}: Pick<CallContext<ParentCaller | TokenCaller>, 'caller' | 'metadata'>): Actor {
  const { requestId, clientAddress } = metadata
  if (caller.kind === 'token') return { kind: 'token', name: caller.artifactId, requestId, clientAddress }
  if (caller.user !== undefined) return userActor(caller.user.email, metadata)
  return { kind: 'parent_key', name: caller.tenantId, requestId, clientAddress }
}

export type Trace = Pick<RequestMetadata, 'requestId' | 'clientAddress'>

export function userActor(email: string, { requestId, clientAddress }: Trace): Actor {
  return { kind: 'user', name: email, requestId, clientAddress }
}

export type AuditRow = Selectable<AuditEventTable>
