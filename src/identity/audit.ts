/** Writes down who changed what, so that it can be read later; nothing written is ever changed or deleted. */

import type { Selectable } from 'kysely'
import type { Database } from '../db/database.ts'
import type { AuditEventTable } from '../db/tables.ts'
import { withoutKeys } from '../lib/api-key.ts'
import { ServiceError } from '../lib/errors.ts'
import { type Page, type PageQuery, toPage } from '../lib/page.ts'
import type { CallContext, ParentCaller, RequestMetadata, TokenCaller } from '../operations/operation.ts'
import type { Dependencies } from './dependencies.ts'

/** Everything that is written down. */
export const auditActions = [
  'key.create',
  'key.register',
  'key.provision',
  'key.claim',
  'key.rotate',
  'key.revoke',
  'agent_key.rotate',
  'agent.delete',
  'file.delete',
  'artifact.delete',
  'budget.set',
  'policy.set',
  'session.offer',
  'session.begin',
] as const

/** What was done, and to what. */
export interface AuditEvent {
  readonly action: (typeof auditActions)[number]
  readonly target: { readonly kind: 'key' | 'agent' | 'file' | 'artifact' | 'user'; readonly id: string }
  /** The parent key the target is, or belongs to; null when there is none. */
  readonly tenantId: string | null
  /** What changed, as JSON; never a secret. */
  readonly details?: Readonly<Record<string, unknown>>
}

export type AuditDeps = Pick<Dependencies, 'db' | 'random' | 'nextPosition'>

const MICROSECONDS = 1_000_000

/**
 * Writes the event down. To be called with the transaction (`{ ...deps, db: trx }`) that makes the change: then there is no change
 * without its row, and no row without its change. Security: 2.13. Decision: ADR 0014.
 */
export async function recordAudit(deps: AuditDeps, actor: Actor, event: AuditEvent): Promise<void> {
  const position = deps.nextPosition()
  await insertAuditRow(deps.db, {
    id: newAuditId(position, deps.random),
    // Not read from the clock once more: the id and the time must tell the same order.
    created_at: Math.floor(position / MICROSECONDS),
    actor_kind: actor.kind,
    actor: actor.name,
    action: event.action,
    target_kind: event.target.kind,
    target_id: event.target.id,
    tenant: event.tenantId,
    // Names and request ids are a caller's own words, and could be a key.
    request_id: actor.requestId === null ? null : withoutKeys(actor.requestId),
    client_address: actor.clientAddress,
    details: withoutKeys(JSON.stringify(event.details ?? {})),
  })
}

/** Which events are asked for; times are Unix seconds, both included. */
export interface AuditQuery extends PageQuery {
  readonly action?: AuditEvent['action'] | undefined
  readonly actor?: string | undefined
  /** The id of what was acted on. */
  readonly target?: string | undefined
  readonly from?: number | undefined
  readonly to?: number | undefined
}

/**
 * What was done, newest first, by whomever.
 * @throws ServiceError `invalid_value` when `after` is no event's id.
 */
export async function listAuditEvents(
  { db }: Pick<Dependencies, 'db'>,
  query: AuditQuery,
): Promise<Page<AuditRow>> {
  const { limit, after, from, to, ...filters } = query
  if (after !== undefined && !auditId.test(after))
    throw new ServiceError('invalid_value', `after: '${withoutKeys(after)}' is no event's id`, {
      param: 'after',
    })
  const rows = await listAuditRows(db, {
    ...filters,
    limit: limit + 1,
    before: [after, to === undefined ? undefined : idPrefixOf((to + 1) * MICROSECONDS)],
    notBefore: from === undefined ? undefined : idPrefixOf(from * MICROSECONDS),
  })
  return toPage(rows, limit)
}

const auditId = /^audit-[0-9a-z]{12}[0-9a-f]{12}$/
/** Twelve digits of base 36 outlast the calendar. */
const POSITION_DIGITS = 12

/** Begins with the moment, so that the order of ids is the order of time, and ends with chance: other processes write too. */
function newAuditId(position: number, random: Dependencies['random']): string {
  return `${idPrefixOf(position)}${Buffer.from(random(6)).toString('hex')}`
}

/** Sorts before the ids of all events of that moment or later. */
function idPrefixOf(position: number): string {
  return `audit-${position.toString(36).padStart(POSITION_DIGITS, '0')}`
}

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
  metadata,
}: Pick<CallContext<ParentCaller | TokenCaller>, 'caller' | 'metadata'>): Actor {
  const { requestId, clientAddress } = metadata
  if (caller.kind === 'token') return { kind: 'token', name: caller.artifactId, requestId, clientAddress }
  if (caller.user !== undefined) return userActor(caller.user.email, metadata)
  return { kind: 'parent_key', name: caller.tenantId, requestId, clientAddress }
}

/** What an act can be traced to. */
export type Trace = Pick<RequestMetadata, 'requestId' | 'clientAddress'>

/** A user, also one whose first call is not let in yet. */
export function userActor(email: string, { requestId, clientAddress }: Trace): Actor {
  return { kind: 'user', name: email, requestId, clientAddress }
}

export type AuditRow = Selectable<AuditEventTable>

export async function insertAuditRow(db: Database, row: AuditRow): Promise<void> {
  await db.insertInto('audit_events').values(row).execute()
}

/** Which rows; `before` and `notBefore` are ids, or beginnings of ids. */
export interface AuditSlice {
  readonly limit: number
  readonly before: readonly (string | undefined)[]
  readonly notBefore: string | undefined
  readonly action?: string | undefined
  readonly actor?: string | undefined
  readonly target?: string | undefined
}

/** Newest first. */
export async function listAuditRows(db: Database, slice: AuditSlice): Promise<AuditRow[]> {
  const { limit, before, notBefore, action, actor, target } = slice
  let query = db.selectFrom('audit_events').selectAll().orderBy('id', 'desc').limit(limit)
  for (const id of before) if (id !== undefined) query = query.where('id', '<', id)
  if (notBefore !== undefined) query = query.where('id', '>=', notBefore)
  if (action !== undefined) query = query.where('action', '=', action)
  if (actor !== undefined) query = query.where('actor', '=', actor)
  if (target !== undefined) query = query.where('target_id', '=', target)
  return query.execute()
}
