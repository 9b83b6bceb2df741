/** Defines the model policy schemas, and renders policies for API responses. */
import { z } from 'zod'
import type { Budget, getBudget } from '../../budgets/token-budgets.ts'
import {
  findDefaultModel,
  listAllowed,
  listFallbacks,
  type ModelName,
  type ModelPolicy,
} from '../../models/policy.ts'
import type { ModelRoute } from '../../providers/provider.ts'
import type { Agent } from '../cache.ts'
import type { Dependencies } from '../dependencies.ts'
import { AgentReference } from '../schema.ts'

const MOST_ALLOWED = 200
const MOST_FALLBACKS = 10
const MOST_STEPS = 3

const provider = z.string().min(1).max(100).meta({ description: 'Name of a configured provider.' })
const model = z.string().min(1).max(300).meta({ description: 'Model id as the provider lists it.' })
const name = z.strictObject({ provider, model })
const steps = z
  .array(
    z.strictObject({
      at: z.int().min(1).max(100).meta({ description: 'Percentage of the limit with its grants.' }),
      to: name,
    }),
  )
  .max(MOST_STEPS)
const tokens = z.int().min(0).nullish()
const ignored = z.unknown().optional().meta({ description: 'Read-only; ignored in PUT.' })

/**
 * The body of the PUT request. Ignores read-only fields, so that clients can send back the response of a GET
 * request.
 */
export const ModelPolicyBody = z
  .strictObject({
    default_model: name.nullish().meta({ description: 'Model to use if the request does not specify one.' }),
    allowed_models: z
      .array(z.strictObject({ provider, model: model.nullish() }))
      .max(MOST_ALLOWED)
      .default([])
      .meta({
        description:
          "Models that the agent can use. An empty list allows all models. An entry without `model` allows all of the provider's models.",
      }),
    fallback_models: z.array(name).max(MOST_FALLBACKS).default([]).meta({
      description: 'Fallback models, tried in order when a model fails before it sends its first byte.',
    }),
    max_output_tokens: z
      .int()
      .positive()
      .nullish()
      .meta({ description: 'Maximum number of output tokens per response.' }),
    degrade: steps.default([]).meta({
      description:
        'Models that answer new turns when any budget that applies is used up to `at` percent, in ascending order of `at`. The last step that is reached applies, even if the request names a model.',
    }),
    budget: z.strictObject({ day: tokens, month: tokens }).nullish().meta({
      description:
        'Maximum number of tokens per UTC day and UTC month, for all calls of the agent. Null or absent means unlimited.',
    }),
    budget_used: ignored,
    model_policy_updated_at: ignored,
    source: ignored,
    effective_models: ignored,
  })
  .meta({ id: 'ModelPolicyBody' })
export type ModelPolicyBody = z.infer<typeof ModelPolicyBody>

export const ModelPolicyReplacement = ModelPolicyBody.extend(AgentReference.shape)

const count = z.int().nullable()

export const AgentModelPolicy = z
  .strictObject({
    agent_id: z.string(),
    default_model: name.nullable(),
    allowed_models: z.array(z.strictObject({ provider, model: model.nullable() })),
    fallback_models: z.array(name),
    max_output_tokens: count,
    degrade: steps,
    budget: z.strictObject({ day: count, month: count }),
    budget_used: z
      .strictObject({ day: count, month: count })
      .meta({ description: 'Tokens used in the current UTC day and month.' }),
    model_policy_updated_at: count.meta({ description: 'Unix seconds; null if the policy was never set.' }),
    source: z
      .enum(['policy', 'yaml', 'none'])
      .meta({ description: 'Source of `default_model`: the policy, the definition, or none.' }),
    effective_models: z
      .array(z.strictObject({ provider, model, role: z.enum(['default', 'fallback', 'allowed']) }))
      .meta({
        description:
          'Models that the agent can use now: the default model, its fallbacks in order, and other models that a request can specify.',
      }),
  })
  .meta({ id: 'AgentModelPolicy' })
export type AgentModelPolicy = z.infer<typeof AgentModelPolicy>

export function toModelPolicy(body: ModelPolicyBody): ModelPolicy {
  return {
    default_model: body.default_model ?? null,
    allowed_models: body.allowed_models.map(({ provider, model = null }) => ({ provider, model })),
    fallback_models: body.fallback_models,
    max_output_tokens: body.max_output_tokens ?? null,
    degrade: body.degrade,
  }
}

export function toBudget({ budget }: ModelPolicyBody): Budget {
  const { day, month } = budget ?? {}
  return { ...(day == null ? {} : { day }), ...(month == null ? {} : { month }) }
}

export function renderModelPolicy(
  { models }: Pick<Dependencies, 'models'>,
  agent: Agent,
  { day, month }: Awaited<ReturnType<typeof getBudget>>,
): AgentModelPolicy {
  const { policy, row } = agent
  const found = findDefaultModel(models, { policy, ownModel: agent.definition.model })
  const [default_model, source] =
    policy.default_model !== null
      ? ([policy.default_model, 'policy'] as const)
      : found?.source === 'yaml'
        ? ([toName(found.route), 'yaml'] as const)
        : ([null, 'none'] as const)
  return {
    agent_id: row.id,
    default_model,
    allowed_models: [...policy.allowed_models],
    fallback_models: [...policy.fallback_models],
    max_output_tokens: policy.max_output_tokens,
    degrade: [...policy.degrade],
    budget: { day: day?.limit ?? null, month: month?.limit ?? null },
    budget_used: { day: day?.used ?? null, month: month?.used ?? null },
    model_policy_updated_at: row.model_policy_updated_at,
    source,
    effective_models: listEffective(models, policy, found?.route),
  }
}

function listEffective(
  models: Dependencies['models'],
  policy: ModelPolicy,
  first: ModelRoute | undefined,
): AgentModelPolicy['effective_models'] {
  const fallbacks = listFallbacks(models, policy, first)
  const tried = [...(first === undefined ? [] : [toName(first)]), ...fallbacks.map(toName)]
  const others = listAllowed(models, policy)
    .map(({ provider, backendId }) => ({ provider, model: backendId }))
    .filter((one) => !tried.some((name) => name.provider === one.provider && name.model === one.model))
  return [
    ...tried.map((name, index) => ({
      ...name,
      role: index === 0 && first !== undefined ? ('default' as const) : ('fallback' as const),
    })),
    ...others.map((name) => ({ ...name, role: 'allowed' as const })),
  ]
}

function toName({ backend, model }: ModelRoute): ModelName {
  return { provider: backend.name, model }
}
