/** Writes down who changed what, so that it can be read later; nothing written is ever changed or deleted. */
import { type Page, type PageQuery, toPage } from '../db/page.ts'
import { ServiceError } from '../errors.ts'
import { withoutKeys } from '../without-keys.ts'
import type { Actor } from './actor.ts'
import type { Dependencies } from './dependencies.ts'
import { type AuditRow, insertAuditRow, listAuditRows } from './store.ts'

export type { AuditRow } from './store.ts'

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
