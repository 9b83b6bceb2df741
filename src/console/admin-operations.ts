/** Defines the API operations that only administrators may call. */
import { z } from 'zod'
import { countAgents } from '../agents/agents.ts'
import {
  listOperatorBudgets,
  renderBudget as renderSpending,
  replaceOperatorBudgets,
} from '../budgets/budgets.ts'
import { OperatorBudgetList, OperatorBudgetsBody } from '../budgets/schema.ts'
import { type BudgetState, getBudget, readBudgets, setBudget } from '../budgets/token-budgets.ts'
import { type Actor, actorOf, listAuditEvents } from '../identity/audit.ts'
import { KeyRevoked } from '../identity/key-schema.ts'
import {
  getLiveKey,
  listKeyPage,
  listKeysOfUsers,
  listParentKeys,
  revokeParentKey,
} from '../identity/keys.ts'
import { listUsers, readEmails } from '../identity/users.ts'
import { ServiceError } from '../lib/errors.ts'
import { operationsOf } from '../operations/operation.ts'
import { exportCalls, readCalls } from '../usage/calls.ts'
import { renderExport } from '../usage/operations.ts'
import { UsageCallList, UsageCallQuery, UsageExportQuery } from '../usage/schema.ts'
import { readUsage } from '../usage/usage.ts'
import {
  AdminKeyList,
  AdminKeyQuery,
  AdminUsageList,
  AdminUsageQuery,
  AdminUserList,
  AdminUserQuery,
  AuditList,
  AuditListQuery,
  BudgetBody,
  BudgetReplacement,
  KeyBudget,
  KeyReference,
  KeyRevocation,
  KeyRevocationInput,
  renderBudget,
  renderEvent,
  renderKey,
  renderUser,
} from './admin-schema.ts'
import type { Dependencies } from './dependencies.ts'

async function listUsersWithKeys(deps: Dependencies, query: AdminUserQuery): Promise<AdminUserList> {
  const { rows: users, hasMore } = await listUsers(deps, query)
  const ids = users.map(({ id }) => id)
  const keys = await listKeysOfUsers(deps, ids)
  const data = users.map((user) =>
    renderUser(user, keys.get(user.id) ?? [], deps.config.adminEmails.includes(user.email)),
  )
  return { object: 'list', data, has_more: hasMore }
}

async function listOwnedKeys(deps: Dependencies, query: AdminKeyQuery): Promise<AdminKeyList> {
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

async function readAudit(deps: Dependencies, query: AuditListQuery): Promise<AuditList> {
  const from = toSecond(query.from, 'first')
  const to = toSecond(query.to, 'last')
  if (from !== undefined && to !== undefined && from > to)
    throw new ServiceError('invalid_value', 'from: must not be later than `to`', { param: 'from' })
  const { rows, hasMore } = await listAuditEvents(deps, { ...query, from, to })
  return { object: 'list', data: rows.map(renderEvent), has_more: hasMore }
}

/**
 * Sets a parent key's token limits.
 * @throws ServiceError `not_found` if the key does not exist or was revoked.
 */
async function setKeyBudget(
  deps: Dependencies,
  actor: Actor,
  id: string,
  { day, month }: BudgetBody,
): Promise<BudgetState> {
  await getLiveKey(deps, id)
  const owner = { kind: 'parent', tenantId: id } as const
  await setBudget(deps, actor, owner, { ...(day != null && { day }), ...(month != null && { month }) })
  return getBudget(deps, owner)
}

async function readOperatorBudgets(
  deps: Dependencies,
  id: string,
): Promise<z.output<typeof OperatorBudgetList>> {
  await getLiveKey(deps, id)
  const rows = await listOperatorBudgets(deps.db, id)
  return { object: 'list', data: await Promise.all(rows.map((row) => renderSpending(deps, row))) }
}

const SECONDS_IN_DAY = 86_400

function toSecond(moment: string | number | undefined, end: 'first' | 'last'): number | undefined {
  if (typeof moment !== 'string') return moment
  const first = Date.parse(moment) / 1000
  return end === 'first' ? first : first + SECONDS_IN_DAY - 1
}

const administrator = { callers: ['parent'], needs: 'administrator' } as const
const notFound = { 404: 'The key does not exist or was revoked.' }

const { query, mutation } = operationsOf<Dependencies>()('Administration', administrator)

export const adminOperations = {
  users: query({
    http: { method: 'GET', path: '/v1/manager/admin/users' },
    docs: { summary: "List the console's users" },
    input: AdminUserQuery,
    output: AdminUserList,
    run: ({ context: { deps }, input }) => listUsersWithKeys(deps, input),
  }),

  keys: query({
    http: { method: 'GET', path: '/v1/manager/admin/keys' },
    docs: { summary: 'List all parent keys' },
    input: AdminKeyQuery,
    output: AdminKeyList,
    run: ({ context: { deps }, input }) => listOwnedKeys(deps, input),
  }),

  usage: query({
    http: { method: 'GET', path: '/v1/manager/admin/usage' },
    docs: {
      summary: 'Get the usage of all parent keys by day, agent, model or key',
      description: 'Assigns each call to the UTC day on which it started.',
    },
    input: AdminUsageQuery,
    output: AdminUsageList,
    run: async ({ context: { deps }, input: { key, ...rest } }) => {
      const ids = key === undefined ? (await listParentKeys(deps)).map(({ id }) => id) : [key]
      return readUsage(deps, ids, rest)
    },
  }),

  usageCalls: query({
    http: { method: 'GET', path: '/v1/manager/admin/usage/calls' },
    docs: { summary: 'List individual calls of all parent keys, newest first' },
    input: UsageCallQuery,
    output: UsageCallList,
    run: ({ context: { deps }, input: { key, ...rest } }) => readCalls(deps, key, rest),
  }),

  exportUsageCalls: query({
    http: { method: 'GET', path: '/v1/manager/admin/usage/calls.csv' },
    rpc: false,
    response: { generated: 'text/csv; charset=utf-8' },
    docs: { summary: 'Export individual calls of all parent keys as CSV, newest first' },
    input: UsageExportQuery,
    output: z.never(),
    run: ({ context: { deps }, input: { key, ...rest } }) => renderExport(exportCalls(deps, key, rest)),
  }),

  audit: query({
    http: { method: 'GET', path: '/v1/manager/admin/audit' },
    docs: { summary: 'List audit log entries' },
    input: AuditListQuery,
    output: AuditList,
    run: ({ context: { deps }, input }) => readAudit(deps, input),
  }),

  revokeKey: mutation({
    http: { method: 'POST', path: '/v1/manager/admin/keys/{key_id}/revoke' },
    request: { bodySchema: KeyRevocation },
    docs: { summary: 'Permanently revoke a parent key and the keys of its agents', failures: notFound },
    input: KeyRevocationInput,
    output: KeyRevoked,
    run: async ({ context, input: { key_id: id, with_created_keys: withCreated } }) => {
      await revokeParentKey(context.deps, actorOf(context), id, { withCreated })
      return { id, revoked: true as const }
    },
  }),

  setBudget: mutation({
    http: { method: 'PUT', path: '/v1/manager/admin/keys/{key_id}/budget' },
    request: { bodySchema: BudgetBody },
    docs: { summary: "Set or remove a parent key's token budget", failures: notFound },
    input: BudgetReplacement,
    output: KeyBudget,
    run: async ({ context, input: { key_id: id, ...body } }) => {
      const budget = await setKeyBudget(context.deps, actorOf(context), id, body)
      return { id, budget: renderBudget(budget) }
    },
  }),

  budgets: query({
    http: { method: 'GET', path: '/v1/manager/admin/keys/{key_id}/budgets' },
    docs: { summary: 'List the budgets that administrators have set on a parent key', failures: notFound },
    input: KeyReference,
    output: OperatorBudgetList,
    run: ({ context: { deps }, input }) => readOperatorBudgets(deps, input.key_id),
  }),

  setBudgets: mutation({
    http: { method: 'PUT', path: '/v1/manager/admin/keys/{key_id}/budgets' },
    request: { bodySchema: OperatorBudgetsBody },
    docs: {
      summary: 'Replace the budgets that administrators have set on a parent key',
      description: "The key's owner sees these budgets, but cannot change them.",
      failures: notFound,
    },
    input: OperatorBudgetsBody.extend(KeyReference.shape),
    output: OperatorBudgetList,
    run: async ({ context, input: { key_id: id, ...body } }) => {
      const { deps } = context
      await getLiveKey(deps, id)
      await replaceOperatorBudgets(deps, actorOf(context), id, body)
      return readOperatorBudgets(deps, id)
    },
  }),
}
