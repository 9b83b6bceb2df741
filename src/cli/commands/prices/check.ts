/** Finds the models that no price matches, where they are used, and which budgets reject calls to them. */
import { type Agent, createAgentDirectory } from '../../../agents/cache.ts'
import { listAllAgents } from '../../../agents/list.ts'
import { listEnforcingUsd } from '../../../budgets/budget-store.ts'
import { listParentKeys } from '../../../identity/keys.ts'
import type { ModelCatalogue } from '../../../models/catalogue.ts'
import { isAllowed } from '../../../models/policy.ts'
import { splitId } from '../../../models/price-overrides.ts'
import type { PriceBook } from '../../../prices/lookup.ts'
import { listUnpricedModels } from '../../../usage/usage.ts'
import type { PriceDeps } from './book.ts'

export interface UnpricedUse {
  readonly provider: string
  readonly model: string
  /** The sources that name the model: `provider`, `default` (the settings), or the id of an agent. */
  readonly named_by: readonly string[]
  /** Number of calls without a price in the last 30 days. */
  readonly unpriced_requests: number
  /** Ids of the budgets in US dollars that reject calls to the model. */
  readonly refused_by: readonly string[]
}

/** Lists the models without a price; those that budgets reject come first. */
export async function findUnpriced(
  deps: PriceDeps,
  book: PriceBook,
  models: ModelCatalogue,
): Promise<UnpricedUse[]> {
  const agents = await listEveryAgent(deps)
  const named = nameModels(deps, models, agents)
  const calls = new Map((await listUnpricedModels(deps)).map((one) => [`${one.provider}/${one.model}`, one]))
  const budgets = await listEnforcingUsd(deps.db)
  const uses = [...new Set([...named.keys(), ...calls.keys()])].flatMap((id): UnpricedUse[] => {
    const model = splitId(id)
    if (book.find(model.provider, model.model, deps.clock.now()) !== undefined) return []
    const refusing = budgets.filter(({ scope_kind, scope_id, parent_key_id }) =>
      scope_kind === 'key'
        ? true
        : agents.some(
            ({ row, policy }) =>
              row.id === scope_id && row.parent_key_id === parent_key_id && isAllowed(policy, model),
          ),
    )
    return [
      {
        ...{ ...model, named_by: [...(named.get(id) ?? [])] },
        unpriced_requests: calls.get(id)?.requests ?? 0,
        refused_by: refusing.map((budget) => budget.id),
      },
    ]
  })
  return uses.toSorted(
    (one, other) =>
      other.refused_by.length - one.refused_by.length || other.unpriced_requests - one.unpriced_requests,
  )
}

async function listEveryAgent({ db, clock }: PriceDeps): Promise<Agent[]> {
  const agents = createAgentDirectory(db, clock)
  const found: Agent[] = []
  for (const { id, revoked_at } of await listParentKeys({ db }))
    if (revoked_at === null) found.push(...(await listAllAgents({ db, agents }, id)))
  return found
}

/** Returns the sources that name each model, keyed by `provider/model`. */
function nameModels(
  { config }: PriceDeps,
  models: ModelCatalogue,
  agents: readonly Agent[],
): Map<string, Set<string>> {
  const named = new Map<string, Set<string>>()
  const add = (provider: string, model: string, by: string) => {
    const id = `${provider}/${model}`
    named.set(id, (named.get(id) ?? new Set()).add(by))
  }
  /** Adds a model id that clients can send, such as an alias. */
  const resolve = (id: string | undefined, by: string) => {
    const route = id === undefined ? undefined : models.resolve(id)
    if (route !== undefined) add(route.backend.name, route.model, by)
  }
  for (const { provider, backendId } of models.list()) add(provider, backendId, 'provider')
  resolve(config.defaultModel, 'default')
  resolve(config.defaultEmbeddingModel, 'default')
  for (const { row, definition, policy } of agents) {
    resolve(definition.model, row.id)
    const { default_model, allowed_models, fallback_models, degrade } = policy
    for (const { provider, model } of [...allowed_models, ...fallback_models, ...degrade.map(({ to }) => to)])
      if (model !== null) add(provider, model, row.id)
    if (default_model !== null) add(default_model.provider, default_model.model, row.id)
  }
  return named
}
