/** One turn of conversation: who answers, with which model and tools, and the request that says so. */
import type { Agent } from '../agents/directory.ts'
import { getOwnAgent } from '../agents/self.ts'
import type { Deps } from '../deps.ts'
import { ServiceError } from '../errors.ts'
import type { Caller } from '../keys/schema.ts'
import type { ModelRoute } from '../models/catalogue.ts'
import { AGENT_PREFIX } from '../models/schema.ts'
import { toAgentRequest } from './agent-request.ts'
import { type ChatRequest, chatApiFields } from './schema.ts'

/** A request ready for a backend. */
export interface Turn {
  readonly route: ModelRoute
  /** The chat-API body but for `model`, `stream` and `stream_options`, which the service owns. */
  readonly request: ChatRequest
  /** The tools the model may call in an agent's turn; undefined when nobody restricts it. */
  readonly toolNames: ReadonlySet<string> | undefined
}

/**
 * Decides a caller's turn. Decision: 7.
 * @throws ServiceError `model_not_found`, `model_not_allowed`, `invalid_value`, `service_unavailable` when there is no model at all.
 */
export async function prepareTurn(deps: Deps, caller: Caller, request: ChatRequest): Promise<Turn> {
  if (caller.kind === 'agent') assertChatApiOnly(request)
  const agent = await findTurnAgent(deps, caller, request.model)
  const route = deps.models.route(chooseModel(deps, agent, request.model))
  if (agent === undefined) return { route, request, toolNames: undefined }
  const made = toAgentRequest(agent, request)
  return { route, request: made.request, toolNames: made.toolNames }
}

/** The body for the backend. Usage is always asked of a stream; the caller sees it only on request. Decision: 7 (Streams). */
export function backendBody(
  { route, request }: Turn,
  messages: ChatRequest['messages'],
  isStream: boolean,
): Record<string, unknown> {
  const body = { ...request, model: route.model, messages, stream: isStream }
  if (!isStream) return body
  return { ...body, stream_options: { ...request.stream_options, include_usage: true } }
}

/** The key's own agent, or the one a parent key names as a model. */
async function findTurnAgent(
  deps: Deps,
  caller: Caller,
  model: string | null | undefined,
): Promise<Agent | undefined> {
  const named = model?.startsWith(AGENT_PREFIX) ? model.slice(AGENT_PREFIX.length) : undefined
  if (caller.kind === 'agent') {
    if (named !== undefined && named !== caller.agentId) {
      throw new ServiceError('model_not_allowed', 'This key chats with its own agent only.', {
        param: 'model',
      })
    }
    return getOwnAgent(deps, caller)
  }
  if (named === undefined) return undefined
  const agent = await deps.agents.find(caller.tenantId, named)
  if (agent !== undefined) return agent
  throw new ServiceError('model_not_found', `The model '${model}' does not exist here.`, { param: 'model' })
}

/** What the caller names; else the agent's model where a backend knows it; else the default. */
function chooseModel(
  { models }: Pick<Deps, 'models'>,
  agent: Agent | undefined,
  named: string | null | undefined,
): string {
  if (named != null && !named.startsWith(AGENT_PREFIX)) return named
  const own = agent?.definition.model
  const chosen = own !== undefined && models.isKnown(own) ? own : models.defaultModel()
  if (chosen === undefined) {
    throw new ServiceError('service_unavailable', 'No backend has said yet which models it has.')
  }
  return chosen
}

function assertChatApiOnly(request: ChatRequest): void {
  const param = Object.keys(request).find((field) => !chatApiFields.has(field))
  if (param !== undefined) {
    throw new ServiceError('invalid_value', `${param}: is not a field of the chat API`, {
      param,
      code: 'unknown_parameter',
    })
  }
}
