/** Which models an agent may use, and in which order it turns to them; kept beside its definition, never in it. */

import type { ModelRoute } from '../providers/provider.ts'
import type { CatalogueModel, ModelCatalogue } from './catalogue.ts'

/** One model of a provider, by the id the provider itself uses. */
export interface ModelName {
  readonly provider: string
  readonly model: string
}

/** A model that is allowed; all of the provider's with `model` null. */
export interface AllowedModel {
  readonly provider: string
  readonly model: string | null
}

/** An agent's policy as its owner wrote it. Decision: 6 (Model policy). */
export interface ModelPolicy {
  readonly default_model: ModelName | null
  /** Empty = unrestricted. */
  readonly allowed_models: readonly AllowedModel[]
  /** Tried in order. */
  readonly fallback_models: readonly ModelName[]
  /** The most tokens of an answer. */
  readonly max_output_tokens: number | null
}

/** The policy of whoever has written none. */
export const openPolicy: ModelPolicy = {
  default_model: null,
  allowed_models: [],
  fallback_models: [],
  max_output_tokens: null,
}

/** What decides which model answers when the caller names none. */
export interface ModelWishes {
  readonly policy: ModelPolicy
  /** The one in the agent's own definition: any id a caller could name. */
  readonly ownModel: string | undefined
}

/** Where the model comes from that is used when nobody names one. */
export interface DefaultModel {
  readonly route: ModelRoute
  readonly source: 'policy' | 'yaml' | 'none'
}

export function isAllowed({ allowed_models }: ModelPolicy, { provider, model }: ModelName): boolean {
  if (allowed_models.length === 0) return true
  return allowed_models.some(
    (allowed) => allowed.provider === provider && (allowed.model === null || allowed.model === model),
  )
}

export function isRouteAllowed(policy: ModelPolicy, { backend, model }: ModelRoute): boolean {
  return isAllowed(policy, { provider: backend.name, model })
}

/**
 * The policy's default, then the definition's model, then the backends' default, whichever is there and allowed first; else the
 * first allowed one. Undefined when there is none. Decision: 7.
 */
export function findDefaultModel(
  models: ModelCatalogue,
  { policy, ownModel }: ModelWishes,
): DefaultModel | undefined {
  const byPolicy = policy.default_model
  const route = byPolicy === null ? undefined : models.findRoute(byPolicy.provider, byPolicy.model)
  if (route !== undefined) return { route, source: 'policy' }
  const own = findAllowed(models, policy, ownModel)
  if (own !== undefined) return { route: own, source: 'yaml' }
  const common = findAllowed(models, policy, models.defaultModel()) ?? findFirstAllowed(models, policy)
  return common === undefined ? undefined : { route: common, source: 'none' }
}

/** The fallbacks that are there now, in order. */
export function listFallbacks(models: ModelCatalogue, { fallback_models }: ModelPolicy): ModelRoute[] {
  return fallback_models
    .map(({ provider, model }) => models.findRoute(provider, model))
    .filter((route) => route !== undefined)
}

/** The listed models that chat, and that the policy allows. */
export function listAllowed(models: ModelCatalogue, policy: ModelPolicy): CatalogueModel[] {
  return models.list().filter((listed) => listed.chats && isListedAllowed(policy, listed))
}

export function isListedAllowed(policy: ModelPolicy, { provider, backendId }: CatalogueModel): boolean {
  return isAllowed(policy, { provider, model: backendId })
}

export function isSameRoute(one: ModelRoute, other: ModelRoute): boolean {
  return one.backend === other.backend && one.model === other.model
}

/** The id a caller names a route's model by: the shortest there is. */
export function idOf(models: ModelCatalogue, { backend, model }: ModelRoute): string {
  const id = `${backend.name}/${model}`
  return models.find(id)?.id ?? id
}

function findAllowed(
  models: ModelCatalogue,
  policy: ModelPolicy,
  id: string | undefined,
): ModelRoute | undefined {
  if (id === undefined || !models.isKnown(id)) return undefined
  const route = models.route(id)
  return isRouteAllowed(policy, route) ? route : undefined
}

/** In the order the policy names them; of a whole provider, the first it lists. */
function findFirstAllowed(models: ModelCatalogue, policy: ModelPolicy): ModelRoute | undefined {
  for (const { provider, model } of policy.allowed_models) {
    const id =
      model ?? models.list().find((listed) => listed.provider === provider && listed.chats)?.backendId
    const route = id === undefined ? undefined : models.findRoute(provider, id)
    if (route !== undefined) return route
  }
  return undefined
}
