/** What administrators can do: see every user and key, what was used and what was done; end a key, bound its tokens. */
import { countAgents } from '../agents/agents.ts'
import { type Actor, type AuditRow, listAuditEvents } from '../identity/audit.ts'
import { getLiveKey, listKeyPage, listKeysOfUsers, listParentKeys } from '../identity/keys.ts'
import { listUsers, readEmails } from '../identity/users.ts'
import { ServiceError } from '../lib/errors.ts'
import type { Page } from '../lib/page.ts'
import { type BudgetState, getBudget, readBudgets, setBudget } from '../usage/budgets.ts'
import { readUsage } from '../usage/usage.ts'
import type { Dependencies } from './admin-dependencies.ts'
import type {
  AdminListQuery,
  AdminUsageQuery,
  AuditListQuery,
  BudgetBody,
  OwnedKey,
  UserWithKeys,
} from './admin-schema.ts'

/** @throws ServiceError `invalid_value` when `after` is no user's id. */
export async function listUsersWithKeys(
  deps: Pick<Dependencies, 'config' | 'db'>,
  query: AdminListQuery,
): Promise<Page<UserWithKeys>> {
  const { rows: users, hasMore } = await listUsers(deps, query)
  const keys = await listKeysOfUsers(
    deps,
    users.map(({ id }) => id),
  )
  const withKeys = users.map((user) => ({
    user,
    keys: keys.get(user.id) ?? [],
    isAdministrator: deps.config.adminEmails.includes(user.email),
  }))
  return { rows: withKeys, hasMore }
}

/** @throws ServiceError `invalid_value` when `after` is no key's id. */
export async function listOwnedKeys(
  deps: Pick<Dependencies, 'db' | 'clock'>,
  query: AdminListQuery,
): Promise<Page<OwnedKey>> {
  const { rows: keys, hasMore } = await listKeyPage(deps, query)
  const ids = keys.map(({ id }) => id)
  const emails = await readEmails(
    deps,
    keys.flatMap(({ user_id }) => user_id ?? []),
  )
  const counts = await countAgents(deps, ids)
  const budgets = await readBudgets(deps, ids)
  const owned = keys.map((key) => ({
    key,
    owner: emails.get(key.user_id ?? '') ?? null,
    agentCount: counts.get(key.id) ?? 0,
    budget: budgets.get(key.id) ?? {},
  }))
  return { rows: owned, hasMore }
}

/** Sums up the calls of one key, or of all. @throws ServiceError `invalid_value` */
export async function readAllUsage(
  deps: Pick<Dependencies, 'db' | 'clock' | 'usage'>,
  query: AdminUsageQuery,
) {
  const { key, ...rest } = query
  const ids = key === undefined ? (await listParentKeys(deps)).map(({ id }) => id) : [key]
  return readUsage(deps, ids, rest)
}

/**
 * What was done, newest first.
 * @throws ServiceError `invalid_value` for an `after` that is no event's id, and for times in the wrong order.
 */
export async function readAudit(
  deps: Pick<Dependencies, 'db'>,
  query: AuditListQuery,
): Promise<Page<AuditRow>> {
  const from = toSecond(query.from, 'first')
  const to = toSecond(query.to, 'last')
  if (from !== undefined && to !== undefined && from > to)
    throw new ServiceError('invalid_value', 'from: must not be after to', { param: 'from' })
  return listAuditEvents(deps, { ...query, from, to })
}

/**
 * Bounds a key's tokens; a period that is null or absent is unbounded.
 * @throws ServiceError `not_found` when there is no such key or it was revoked.
 */
export async function setKeyBudget(
  deps: Pick<Dependencies, 'db' | 'clock' | 'random' | 'nextPosition' | 'usage'>,
  actor: Actor,
  id: string,
  { day, month }: BudgetBody,
): Promise<BudgetState> {
  await getLiveKey(deps, id)
  const owner = { kind: 'parent', tenantId: id } as const
  await setBudget(deps, actor, owner, { ...(day != null && { day }), ...(month != null && { month }) })
  return getBudget(deps, owner)
}

const SECONDS_IN_DAY = 86_400

/** A day stands for its first second or its last. */
function toSecond(moment: string | number | undefined, end: 'first' | 'last'): number | undefined {
  if (typeof moment !== 'string') return moment
  const first = Date.parse(moment) / 1000
  return end === 'first' ? first : first + SECONDS_IN_DAY - 1
}
