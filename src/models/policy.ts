/** Implements agents' model policies, which define which models an agent may use and in what order. */
import { ServiceError } from '../lib/errors.ts'
import type { ModelRoute } from '../providers/provider.ts'
import type { CatalogueModel, ModelCatalogue } from './catalogue.ts'

export interface ModelName {
  readonly provider: string
  readonly model: string
}

interface AllowedModel {
  readonly provider: string
  readonly model: string | null
}

/** A model that answers new turns when a budget is used up to `at` percent. */
interface DegradeStep {
  readonly at: number
  readonly to: ModelName
}

export interface ModelPolicy {
  readonly default_model: ModelName | null
  /** An empty list allows all models. */
  readonly allowed_models: readonly AllowedModel[]
  readonly fallback_models: readonly ModelName[]
  readonly max_output_tokens: number | null
  /** In ascending order of `at`. */
  readonly degrade: readonly DegradeStep[]
}

export const openPolicy: ModelPolicy = {
  default_model: null,
  allowed_models: [],
  fallback_models: [],
  max_output_tokens: null,
  degrade: [],
}

interface ModelWishes {
  readonly policy: ModelPolicy
  /** The model in the agent's definition; may be any id that clients can send. */
  readonly ownModel: string | undefined
}

export function isAllowed({ allowed_models }: ModelPolicy, { provider, model }: ModelName): boolean {
  if (allowed_models.length === 0) return true
  return allowed_models.some(
    (allowed) => allowed.provider === provider && (allowed.model === null || allowed.model === model),
  )
}

function isRouteAllowed(policy: ModelPolicy, { backend, model }: ModelRoute): boolean {
  return isAllowed(policy, { provider: backend.name, model })
}

/**
 * Returns the first available model in this order: the policy's default model, the definition's model, the
 * providers' default, the allowed models.
 */
export function findDefaultModel(
  models: ModelCatalogue,
  { policy, ownModel }: ModelWishes,
): { route: ModelRoute; source: 'policy' | 'yaml' | 'none' } | undefined {
  const byPolicy = policy.default_model
  const route = byPolicy === null ? undefined : models.findRoute(byPolicy.provider, byPolicy.model)
  if (route !== undefined) return { route, source: 'policy' }
  const own = findAllowed(models, policy, ownModel)
  if (own !== undefined) return { route: own, source: 'yaml' }
  const common = findAllowed(models, policy, models.defaultModel()) ?? findFirstAllowed(models, policy)
  return common === undefined ? undefined : { route: common, source: 'none' }
}

/** A model that a turn did not use, and why. */
export interface SkippedModel {
  /** Null for a model id whose provider is unknown. */
  readonly provider: string | null
  readonly model: string
  readonly why: 'not_allowed' | 'not_available' | 'breaker_open' | 'attachment_not_supported' | 'budget'
}

export interface RouteReasons {
  /** The model that the request names; null if it names none. */
  readonly requested: string | null
  /**
   * The source of the model choice. `default` means the providers' default model or the first available
   * allowed model, and `budget` a model in the policy's `degrade`.
   */
  readonly source: 'request' | 'policy' | 'definition' | 'default' | 'budget'
  readonly skipped: readonly SkippedModel[]
}

/** Explains the choice that `chooseRoutes` makes. */
export function explainRoutes(
  models: ModelCatalogue,
  wishes: ModelWishes,
  named: string | null | undefined,
): RouteReasons {
  const { policy, ownModel } = wishes
  const { default_model: byPolicy, fallback_models: fallbacks } = policy
  const missing = fallbacks.filter(({ provider, model }) => models.findRoute(provider, model) === undefined)
  const unusedFallbacks = missing.map((one) => ({ ...one, why: 'not_available' as const }))
  if (named != null) return { requested: named, source: 'request', skipped: unusedFallbacks }
  const source = sources[findDefaultModel(models, wishes)?.source ?? 'none']
  const skipped: SkippedModel[] = []
  if (source !== 'policy' && byPolicy !== null) skipped.push({ ...byPolicy, why: 'not_available' })
  if (source === 'default' && ownModel !== undefined) skipped.push(explainOwn(models, ownModel))
  return { requested: null, source, skipped: [...skipped, ...unusedFallbacks] }
}

const sources = { policy: 'policy', yaml: 'definition', none: 'default' } as const

function explainOwn(models: ModelCatalogue, id: string): SkippedModel {
  const route = models.resolve(id)
  if (route === undefined) return { provider: null, model: id, why: 'not_available' }
  return { provider: route.backend.name, model: route.model, why: 'not_allowed' }
}

/**
 * Returns the requested or default model, followed by the fallbacks. @throws ServiceError if the model does
 * not exist or is not allowed.
 */
export function chooseRoutes(
  models: ModelCatalogue,
  wishes: ModelWishes,
  named: string | null | undefined,
): readonly [ModelRoute, ...ModelRoute[]] {
  const first = named == null ? chooseDefault(models, wishes) : getNamed(models, wishes.policy, named)
  return [first, ...listFallbacks(models, wishes.policy, first)]
}

export interface Refusal {
  readonly failure: ServiceError
  readonly route: RouteReasons & { readonly chosen: null }
  readonly policy: readonly [{ readonly kind: 'model_refused'; readonly name: string }]
}

/** Explains why no model may answer; undefined if one may. */
export function findRefusal(
  models: ModelCatalogue,
  wishes: ModelWishes,
  named: string | null | undefined,
): Refusal | undefined {
  try {
    chooseRoutes(models, wishes, named)
    return undefined
  } catch (failure) {
    if (!(failure instanceof ServiceError)) throw failure
    const { default_model: byPolicy } = wishes.policy
    const wanted = byPolicy === null ? wishes.ownModel : `${byPolicy.provider}/${byPolicy.model}`
    const name = (named ?? wanted ?? 'default').slice(0, 200)
    return {
      failure,
      route: { ...explainRoutes(models, wishes, named), chosen: null },
      policy: [{ kind: 'model_refused', name }],
    }
  }
}

function getNamed(models: ModelCatalogue, policy: ModelPolicy, id: string): ModelRoute {
  const route = models.route(id)
  if (isRouteAllowed(policy, route)) return route
  throw new ServiceError('model_not_allowed', `This agent may not use the model '${id}'.`, { param: 'model' })
}

function chooseDefault(models: ModelCatalogue, wishes: ModelWishes): ModelRoute {
  const chosen = findDefaultModel(models, wishes)
  if (chosen !== undefined) return chosen.route
  const standard = models.defaultModel()
  if (standard === undefined)
    throw new ServiceError(
      'service_unavailable',
      'No model provider has reported its models yet; try again later.',
    )
  // Throws `model_not_found` if no provider has the configured default model.
  if (wishes.policy.allowed_models.length === 0) return models.route(standard)
  throw new ServiceError(
    'service_unavailable',
    'None of the models that this agent may use is currently available.',
  )
}

export function listFallbacks(
  models: ModelCatalogue,
  { fallback_models }: ModelPolicy,
  first: ModelRoute | undefined,
): ModelRoute[] {
  return fallback_models.flatMap(({ provider, model }) => {
    const route = models.findRoute(provider, model)
    const isFirst = route?.backend === first?.backend && route?.model === first?.model
    return route === undefined || isFirst ? [] : [route]
  })
}

/** Returns the models of the steps that apply when a budget is used up to `percent`, the last step first. */
export function listDegraded({ degrade }: ModelPolicy, percent: number): ModelName[] {
  return degrade
    .filter(({ at }) => percent >= at)
    .map(({ to }) => to)
    .toReversed()
}

export function listAllowed(models: ModelCatalogue, policy: ModelPolicy): CatalogueModel[] {
  return models.list().filter((listed) => listed.chats && isListedAllowed(policy, listed))
}

export function isListedAllowed(policy: ModelPolicy, { provider, backendId }: CatalogueModel): boolean {
  return isAllowed(policy, { provider, model: backendId })
}

export function idOf(models: ModelCatalogue, { backend, model }: ModelRoute): string {
  const id = `${backend.name}/${model}`
  return models.find(id)?.id ?? id
}

function findAllowed(
  models: ModelCatalogue,
  policy: ModelPolicy,
  id: string | undefined,
): ModelRoute | undefined {
  const route = id === undefined ? undefined : models.resolve(id)
  return route !== undefined && isRouteAllowed(policy, route) ? route : undefined
}

/** Follows the policy's order; an entry without a model selects the provider's first listed chat model. */
function findFirstAllowed(models: ModelCatalogue, policy: ModelPolicy): ModelRoute | undefined {
  for (const { provider, model } of policy.allowed_models) {
    const id =
      model ?? models.list().find((listed) => listed.provider === provider && listed.chats)?.backendId
    const route = id === undefined ? undefined : models.findRoute(provider, id)
    if (route !== undefined) return route
  }
  return undefined
}
