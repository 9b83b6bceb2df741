/** Which models a caller may name: the backends', and its agents beside them. */
import type { Deps } from '../deps.ts'
import { ServiceError } from '../errors.ts'
import type { Caller } from '../keys/schema.ts'
import { JsonBytes } from '../rpc/answer.ts'
import type { CatalogueModel } from './catalogue.ts'
import { AGENT_PREFIX, type ListedAgent, type Model, renderAgentModel, renderModel } from './schema.ts'

type ModelDeps = Pick<Deps, 'agents' | 'models'>
type AgentNames = readonly ListedAgent[]

/** The rendered list beside what it was rendered from: it holds as long as neither has been replaced. */
interface RenderedList {
  readonly models: readonly CatalogueModel[]
  readonly bytes: Buffer
}

const renderedLists = new WeakMap<AgentNames, RenderedList>()

/** The whole list as JSON; encoded again only when the models or the caller's agents have changed. */
export async function listModels(deps: ModelDeps, caller: Caller): Promise<JsonBytes> {
  const agents = await listCallersAgents(deps, caller)
  const models = deps.models.list()
  const known = renderedLists.get(agents)
  if (known?.models === models) return new JsonBytes(known.bytes)
  const data = [...models.map(renderModel), ...agents.map(renderAgentModel)]
  const bytes = Buffer.from(JSON.stringify({ object: 'list', data }))
  renderedLists.set(agents, { models, bytes })
  return new JsonBytes(bytes)
}

/**
 * One model of the list, also as `provider/model`.
 * @throws ServiceError `model_not_found`
 */
export async function getModel(deps: ModelDeps, caller: Caller, id: string): Promise<Model> {
  if (id.startsWith(AGENT_PREFIX)) {
    const agents = await listCallersAgents(deps, caller)
    const agent = agents.find((row) => row.id === id.slice(AGENT_PREFIX.length))
    if (agent !== undefined) return renderAgentModel(agent)
  }
  const model = deps.models.find(id)
  if (model !== undefined) return { ...renderModel(model), id }
  throw new ServiceError('model_not_found', `The model '${id}' does not exist here.`, { param: 'model' })
}

async function listCallersAgents({ agents }: ModelDeps, caller: Caller): Promise<AgentNames> {
  return agents.list(caller.tenantId, caller.kind === 'agent' ? caller.agentId : undefined)
}
