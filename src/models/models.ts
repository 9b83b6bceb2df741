/** Lists the models that a caller may use: the providers' models and the tenant's agents. */
import { ServiceError } from '../lib/errors.ts'
import { type Caller, JsonBytes } from '../operations/operation.ts'
import type { CatalogueModel, ModelCatalogue } from './catalogue.ts'
import { isListedAllowed, type ModelPolicy } from './policy.ts'
import { AGENT_PREFIX, type ListedAgent, type Model, renderAgentModel, renderModel } from './schema.ts'

export type ModelDeps = { readonly agents: ListedAgents; readonly models: ModelCatalogue }

interface Offer {
  readonly agents: readonly ListedAgent[]
  isAllowed(model: CatalogueModel): boolean
  /** The same object until the models change. */
  readonly source: object
}

/** The last rendered list for each source, with the catalogue models that it was rendered from. */
const renderedLists = new WeakMap<object, { models: readonly CatalogueModel[]; bytes: Buffer }>()

/** Returns the list as JSON; encodes it again only after the models or the caller's agents have changed. */
export async function listModels(deps: ModelDeps, caller: Caller): Promise<JsonBytes> {
  const { agents, isAllowed, source } = await findOffer(deps, caller)
  const models = deps.models.list()
  const known = renderedLists.get(source)
  if (known?.models === models) return new JsonBytes(known.bytes)
  const data = [...models.filter(isAllowed).map(renderModel), ...agents.map(renderAgentModel)]
  const bytes = Buffer.from(JSON.stringify({ object: 'list', data }))
  renderedLists.set(source, { models, bytes })
  return new JsonBytes(bytes)
}

/**
 * Returns one model. `id` is its listed id or its `provider/model` id. @throws ServiceError `model_not_found`
 */
export async function getModel(deps: ModelDeps, caller: Caller, id: string): Promise<Model> {
  const { agents, isAllowed } = await findOffer(deps, caller)
  if (id.startsWith(AGENT_PREFIX)) {
    const agent = agents.find((row) => row.id === id.slice(AGENT_PREFIX.length))
    if (agent !== undefined) return renderAgentModel(agent)
  }
  const model = deps.models.find(id)
  if (model !== undefined && isAllowed(model)) return { ...renderModel(model), id }
  throw new ServiceError('model_not_found', `The model '${id}' does not exist.`, { param: 'model' })
}

/**
 * A parent key may use every model and its own agents; an agent key may use the models that its agent's
 * policy allows.
 */
async function findOffer(deps: ModelDeps, caller: Caller): Promise<Offer> {
  if (caller.kind === 'parent') {
    const agents = await deps.agents.list(caller.tenantId)
    return { agents, isAllowed: () => true, source: agents }
  }
  const agent = await deps.agents.find(caller.tenantId, caller.agentId)
  if (agent === undefined) throw new ServiceError('not_found', 'Agent not found.')
  const isAllowed = (model: CatalogueModel) => isListedAllowed(agent.policy, model)
  return { agents: [agent.row], isAllowed, source: agent }
}

/** The parts of an agent that determine its models. */
interface OfferedTo {
  readonly row: ListedAgent
  readonly policy: ModelPolicy
}

export interface ListedAgents {
  /** Returns the tenant's agents, newest first; the same array while it is cached. */
  list(tenantId: string): Promise<readonly ListedAgent[]>
  find(tenantId: string, id: string): OfferedTo | undefined | Promise<OfferedTo | undefined>
}
