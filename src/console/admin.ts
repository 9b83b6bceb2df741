/** What administrators can do: list users, keys, usage and the audit log; revoke a key and limit its tokens. */
import { countAgents } from '../agents/agents.ts'
import { type Actor, listAuditEvents } from '../identity/audit.ts'
import { getLiveKey, listKeyPage, listKeysOfUsers, listParentKeys } from '../identity/keys.ts'
import { listUsers, readEmails } from '../identity/users.ts'
import { ServiceError } from '../lib/errors.ts'
import { type BudgetState, getBudget, readBudgets, setBudget } from '../usage/budgets.ts'
import { readUsage } from '../usage/usage.ts'
import {
  type AdminKeyList,
  type AdminListQuery,
  type AdminUsageQuery,
  type AdminUserList,
  type AuditList,
  type AuditListQuery,
  type BudgetBody,
  renderBudget,
  renderEvent,
  renderKey,
  renderUser,
} from './admin-schema.ts'
import type { Dependencies } from './dependencies.ts'

export async function listUsersWithKeys(
  deps: Pick<Dependencies, 'config' | 'db'>,
  query: AdminListQuery,
): Promise<AdminUserList> {
  const { rows: users, hasMore } = await listUsers(deps, query)
  const ids = users.map(({ id }) => id)
  const keys = await listKeysOfUsers(deps, ids)
  const data = users.map((user) =>
    renderUser(user, keys.get(user.id) ?? [], deps.config.adminEmails.includes(user.email)),
  )
  return { object: 'list', data, has_more: hasMore }
}

export async function listOwnedKeys(
  deps: Pick<Dependencies, 'db' | 'clock'>,
  query: AdminListQuery,
): Promise<AdminKeyList> {
  const { rows: keys, hasMore } = await listKeyPage(deps, query)
  const ids = keys.map(({ id }) => id)
  const userIds = keys.flatMap(({ user_id }) => user_id ?? [])
  const emails = await readEmails(deps, userIds)
  const counts = await countAgents(deps, ids)
  const budgets = await readBudgets(deps, ids)
  const data = keys.map((key) =>
    renderKey(key, {
      owner: emails.get(key.user_id ?? '') ?? null,
      agents: counts.get(key.id) ?? 0,
      budget: renderBudget(budgets.get(key.id) ?? {}),
    }),
  )
  return { object: 'list', data, has_more: hasMore }
}

/** Sums up the calls of one key, or of all keys. @throws ServiceError `invalid_value` */
export async function readAllUsage(
  deps: Pick<Dependencies, 'db' | 'clock' | 'usage'>,
  query: AdminUsageQuery,
) {
  const { key, ...rest } = query
  const ids = key === undefined ? (await listParentKeys(deps)).map(({ id }) => id) : [key]
  return readUsage(deps, ids, rest)
}

export async function readAudit(deps: Pick<Dependencies, 'db'>, query: AuditListQuery): Promise<AuditList> {
  const from = toSecond(query.from, 'first')
  const to = toSecond(query.to, 'last')
  if (from !== undefined && to !== undefined && from > to)
    throw new ServiceError('invalid_value', 'from: must not be after to', { param: 'from' })
  const { rows, hasMore } = await listAuditEvents(deps, { ...query, from, to })
  return { object: 'list', data: rows.map(renderEvent), has_more: hasMore }
}

/** Limits the tokens of a key. @throws ServiceError `not_found` when there is no such key or it was revoked. */
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

function toSecond(moment: string | number | undefined, end: 'first' | 'last'): number | undefined {
  if (typeof moment !== 'string') return moment
  const first = Date.parse(moment) / 1000
  return end === 'first' ? first : first + SECONDS_IN_DAY - 1
}
