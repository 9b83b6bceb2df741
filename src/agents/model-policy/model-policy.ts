/** Reads and replaces an agent's model policy. */

import { getBudget, writeBudget } from '../../budgets/token-budgets.ts'
import { type Actor, type AuditDeps, recordAudit } from '../../identity/audit.ts'
import { lockTenant } from '../../identity/keys.ts'
import { unixSeconds } from '../../lib/clock.ts'
import { ServiceError } from '../../lib/errors.ts'
import { isAllowed, type ModelPolicy } from '../../models/policy.ts'
import { getAgent } from '../agents.ts'
import { type AgentDirectory, agentNotFound } from '../cache.ts'
import type { Dependencies } from '../dependencies.ts'
import { updateUnversioned } from '../store.ts'
import {
  type AgentModelPolicy,
  type ModelPolicyBody,
  renderModelPolicy,
  toBudget,
  toModelPolicy,
} from './schema.ts'

type PolicyDeps = Pick<Dependencies, 'db' | 'clock' | 'models' | 'budgets'> & {
  readonly agents: AgentDirectory
}

/** Returns the policy with its effective models. @throws ServiceError `not_found` */
export async function getModelPolicy(
  deps: PolicyDeps,
  tenantId: string,
  agentId: string,
): Promise<AgentModelPolicy> {
  const agent = await getAgent(deps, tenantId, agentId)
  const budget = await getBudget(deps, { kind: 'agent', tenantId, agentId })
  return renderModelPolicy(deps, agent, budget)
}

/**
 * Replaces the policy and the budget in one transaction.
 * @throws ServiceError `not_found`; `invalid_value`, with the code `default_model_not_allowed` for a default
 * model, fallback model or model in `degrade` that is not in `allowed_models`.
 */
export async function replaceModelPolicy(
  deps: PolicyDeps & AuditDeps & Pick<Dependencies, 'usage'>,
  actor: Actor,
  tenantId: string,
  agentId: string,
  body: ModelPolicyBody,
): Promise<AgentModelPolicy> {
  await getAgent(deps, tenantId, agentId)
  const policy = toModelPolicy(body)
  assertKnown(deps, policy)
  assertConsistent(policy)
  const owner = { kind: 'agent', tenantId, agentId } as const
  const budget = toBudget(body)
  await deps.usage.flush()
  await deps.db.transaction().execute(async (trx) => {
    const within = { ...deps, db: trx }
    await lockTenant(within, tenantId)
    const before = (await getAgent(within, tenantId, agentId)).policy
    const budgetBefore = await getBudget(within, owner)
    const isThere = await updateUnversioned(trx, tenantId, agentId, {
      model_policy: JSON.stringify(policy),
      model_policy_updated_at: unixSeconds(deps.clock),
    })
    if (!isThere) throw agentNotFound()
    const target = { kind: 'agent', id: agentId } as const
    const details = { before, after: policy }
    await recordAudit(within, actor, { action: 'policy.set', target, tenantId, details })
    if (budget.day !== budgetBefore.day?.limit || budget.month !== budgetBefore.month?.limit)
      await writeBudget(within, actor, owner, budget)
  })
  deps.agents.invalidate()
  deps.usage.invalidate()
  return getModelPolicy(deps, tenantId, agentId)
}

/** Rejects unknown providers and models when the policy is saved, not at the first call. */
function assertKnown({ models }: Pick<Dependencies, 'models'>, policy: ModelPolicy): void {
  for (const { param, provider, model } of listNamed(policy)) {
    if (!models.providers.includes(provider)) {
      const known = models.providers.join(', ')
      throw invalid(`${param}.provider`, `must be one of ${known} (got '${provider}')`)
    }
    if (model !== null && models.findRoute(provider, model) === undefined)
      throw invalid(`${param}.model`, `must be a model that ${provider} lists (got '${model}')`)
  }
}

function assertConsistent(policy: ModelPolicy): void {
  for (const { param, provider, model } of listNamed({ ...policy, allowed_models: [] })) {
    if (model === null || isAllowed(policy, { provider, model })) continue
    throw invalid(
      param,
      `must be one of the allowed models (got ${provider}/${model})`,
      'default_model_not_allowed',
    )
  }
  for (const [index, { at }] of policy.degrade.entries()) {
    const before = policy.degrade[index - 1]?.at ?? 0
    if (at <= before)
      throw invalid(`degrade[${index}].at`, `must be greater than in the step before, ${before} (got ${at})`)
  }
}

function listNamed({ default_model, allowed_models, fallback_models, degrade }: ModelPolicy) {
  return [
    ...(default_model === null ? [] : [{ param: 'default_model', ...default_model }]),
    ...allowed_models.map((name, index) => ({ param: `allowed_models[${index}]`, ...name })),
    ...fallback_models.map((name, index) => ({ param: `fallback_models[${index}]`, ...name })),
    ...degrade.map(({ to }, index) => ({ param: `degrade[${index}].to`, ...to })),
  ]
}

function invalid(param: string, problem: string, code?: string): ServiceError {
  return new ServiceError('invalid_value', `${param}: ${problem}`, {
    param,
    ...(code === undefined ? {} : { code }),
  })
}
