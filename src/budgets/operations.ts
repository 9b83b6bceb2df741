/** Defines the operations of budgets. */
import { actorOf } from '../identity/audit.ts'
import { operationsOf } from '../operations/operation.ts'
import {
  type AgentFinder,
  changeBudget,
  createBudget,
  getBudgetRow,
  listBudgets,
  removeBudget,
  renderBudget,
  type WriteDeps,
} from './budgets.ts'
import { addAdjustment, addGrant, listSubjects, renderAdjustment, renderGrant } from './entries.ts'
import {
  AdjustmentBody,
  AdjustmentCreation,
  Budget,
  BudgetAdjustment,
  BudgetChanges,
  BudgetCreation,
  BudgetDeleted,
  BudgetGrant,
  BudgetList,
  BudgetQuery,
  BudgetReference,
  BudgetUpdate,
  GrantBody,
  GrantCreation,
  SubjectList,
  SubjectQuery,
} from './schema.ts'

const { query, mutation } = operationsOf<WriteDeps & AgentFinder>()('Budgets', { callers: ['parent'] })

const notFound = { 404: 'There is no budget with this id.' }

export const budgetsOperations = {
  create: mutation({
    http: { method: 'POST', path: '/v1/budgets' },
    response: { status: 201 },
    docs: {
      summary: 'Create a budget',
      description:
        'The budget starts with what its scope has already used on all UTC days of the current period.',
      failures: {
        404: 'The key or agent does not exist.',
        409: 'There is a budget with this scope, unit and period (`budget_exists`), or there are too many.',
      },
    },
    input: BudgetCreation,
    output: Budget,
    run: async ({ context, input }) => {
      const { deps, caller } = context
      return renderBudget(deps, await createBudget(deps, actorOf(context), caller.tenantId, input))
    },
  }),

  list: query({
    http: { method: 'GET', path: '/v1/budgets' },
    docs: { summary: 'List budgets, oldest first' },
    input: BudgetQuery,
    output: BudgetList,
    run: async ({ context: { deps, caller }, input }) => {
      const { rows, hasMore } = await listBudgets(deps, caller.tenantId, input)
      const data = await Promise.all(rows.map((row) => renderBudget(deps, row)))
      return { object: 'list' as const, data, has_more: hasMore }
    },
  }),

  get: query({
    http: { method: 'GET', path: '/v1/budgets/{budget_id}' },
    docs: { summary: 'Get a budget', failures: notFound },
    input: BudgetReference,
    output: Budget,
    run: async ({ context: { deps, caller }, input }) =>
      renderBudget(deps, await getBudgetRow(deps.db, caller.tenantId, input.budget_id)),
  }),

  update: mutation({
    http: { method: 'PATCH', path: '/v1/budgets/{budget_id}' },
    request: { bodySchema: BudgetChanges },
    docs: {
      summary: 'Change a budget',
      description: 'Running calls keep the tokens that they have reserved.',
      failures: notFound,
    },
    input: BudgetUpdate,
    output: Budget,
    run: async ({ context, input: { budget_id: id, ...changes } }) => {
      const { deps, caller } = context
      return renderBudget(deps, await changeBudget(deps, actorOf(context), caller.tenantId, id, changes))
    },
  }),

  delete: mutation({
    http: { method: 'DELETE', path: '/v1/budgets/{budget_id}' },
    docs: { summary: 'Delete a budget', failures: notFound },
    input: BudgetReference,
    output: BudgetDeleted,
    run: async ({ context, input: { budget_id: id } }) => {
      await removeBudget(context.deps, actorOf(context), context.caller.tenantId, id)
      return { id, object: 'budget.deleted' as const, deleted: true as const }
    },
  }),

  grant: mutation({
    http: { method: 'POST', path: '/v1/budgets/{budget_id}/grants' },
    request: { bodySchema: GrantBody },
    response: { status: 201 },
    docs: {
      summary: "Raise a budget's limit for the current period",
      failures: { ...notFound, 409: 'The period already has 100 grants.' },
    },
    input: GrantCreation,
    output: BudgetGrant,
    run: async ({ context, input: { budget_id: id, ...body } }) => {
      const entry = await addGrant(context.deps, actorOf(context), context.caller.tenantId, id, body)
      return renderGrant(entry)
    },
  }),

  adjust: mutation({
    http: { method: 'POST', path: '/v1/budgets/{budget_id}/adjustments' },
    request: { bodySchema: AdjustmentBody },
    response: { status: 201 },
    docs: { summary: 'Correct what a budget has booked in the current period', failures: notFound },
    input: AdjustmentCreation,
    output: BudgetAdjustment,
    run: async ({ context, input: { budget_id: id, ...body } }) => {
      const entry = await addAdjustment(context.deps, actorOf(context), context.caller.tenantId, id, body)
      return renderAdjustment(entry)
    },
  }),

  subjects: query({
    http: { method: 'GET', path: '/v1/budgets/{budget_id}/subjects' },
    docs: {
      summary: 'List the visitors or conversations of a budget',
      description: 'Lists pseudonyms, and only those with calls in the current period.',
      failures: notFound,
    },
    input: SubjectQuery,
    output: SubjectList,
    run: ({ context: { deps, caller }, input }) => listSubjects(deps, caller.tenantId, input),
  }),
}
