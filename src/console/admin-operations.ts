/** The administrators' operations. */
import { actorOf } from '../identity/audit.ts'
import { revokeParentKey } from '../identity/keys.ts'
import { operationsOf } from '../operations/operation.ts'
import { listOwnedKeys, listUsersWithKeys, readAllUsage, readAudit, setKeyBudget } from './admin.ts'
import {
  AdminKeyList,
  AdminListQuery,
  AdminUsageList,
  AdminUsageQuery,
  AdminUserList,
  AuditList,
  AuditListQuery,
  BudgetBody,
  BudgetReplacement,
  KeyBudget,
  KeyReference,
  KeyRevoked,
  renderBudget,
} from './admin-schema.ts'
import type { Dependencies } from './dependencies.ts'

const administrator = { callers: ['parent'], needs: 'administrator' } as const
const notFound = { 404: 'There is no such key, or it was revoked.' }

const { query, mutation } = operationsOf<Dependencies>()('Administration', administrator)

export const adminOperations = {
  users: query({
    http: { method: 'GET', path: '/v1/manager/admin/users' },
    docs: { summary: 'List the users of the console' },
    input: AdminListQuery,
    output: AdminUserList,
    run: ({ context: { deps }, input }) => listUsersWithKeys(deps, input),
  }),

  keys: query({
    http: { method: 'GET', path: '/v1/manager/admin/keys' },
    docs: { summary: 'List all parent keys' },
    input: AdminListQuery,
    output: AdminKeyList,
    run: ({ context: { deps }, input }) => listOwnedKeys(deps, input),
  }),

  usage: query({
    http: { method: 'GET', path: '/v1/manager/admin/usage' },
    docs: {
      summary: 'Sum up the calls of all parent keys by day, agent, model or key',
      description: 'Calls count for the day (UTC) they began on.',
    },
    input: AdminUsageQuery,
    output: AdminUsageList,
    run: ({ context: { deps }, input }) => readAllUsage(deps, input),
  }),

  audit: query({
    http: { method: 'GET', path: '/v1/manager/admin/audit' },
    docs: { summary: 'List what was done to keys, agents, files, budgets and policies, and by whom' },
    input: AuditListQuery,
    output: AuditList,
    run: ({ context: { deps }, input }) => readAudit(deps, input),
  }),

  revokeKey: mutation({
    http: { method: 'POST', path: '/v1/manager/admin/keys/{key_id}/revoke' },
    docs: { summary: 'End a parent key and the keys of its agents, for good', failures: notFound },
    input: KeyReference,
    output: KeyRevoked,
    run: async ({ context, input }) => {
      await revokeParentKey(context.deps, actorOf(context), input.key_id)
      return { id: input.key_id, revoked: true as const }
    },
  }),

  setBudget: mutation({
    http: { method: 'PUT', path: '/v1/manager/admin/keys/{key_id}/budget' },
    request: { bodySchema: BudgetBody },
    docs: { summary: "Bound a parent key's tokens, or take its bounds away", failures: notFound },
    input: BudgetReplacement,
    output: KeyBudget,
    run: async ({ context, input: { key_id: id, ...body } }) => {
      const budget = await setKeyBudget(context.deps, actorOf(context), id, body)
      return { id, budget: renderBudget(budget) }
    },
  }),
}
